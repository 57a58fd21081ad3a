"""Hand-written word lists, facts, code examples and lines of small talk."""

FIRST = """Anna Ben Clara David Emma Frank Grace Henry Iris Jack Kate Leo Maria Noah Olivia Peter Quinn Rosa Sam Tina Uma Victor Wendy
Xavier Yara Zoe Alice Bob Carol Daniel Eva Felix Gina Hugo Ivan Julia Karl Lena Martin Nina Oscar Paul Rita Simon Tom Vera Walter Amir
Bella Chen Dora Elias Fatima George Hana Igor Jane Kofi Lucy Mei Nadia Omar Priya Ravi Sofia Tariq Ursula Wei Yusuf Ada Alan Amy Andrew
Arthur Beth Brian Carl Cathy Chris Dan Diana Dylan Edith Ella Eric Ethan Fiona Fred Hannah Harry Helen Ian Isaac Jacob James Jenny Joan
John Jonas Kevin Laura Liam Linda Lisa Luke Mark Mary Max Mia Michael Molly Nancy Nick Nora Owen Pam Pedro Rachel Robert Ruth Sara Steve
Susan Theo Tony Will Yuki Zara Mona Otto Greta Boris Lars Ingrid Marco Paolo Carlos Diego Elena Pablo""".split()
LAST = """Adams Baker Carter Davis Evans Fisher Garcia Harris Irving Jones King Lopez Miller Novak Olsen Parker Reed Smith Turner Underwood
Vargas White Young Zhang Allen Brown Clark Dixon Ellis Ford Green Hall Hughes Jackson Khan Lee Martin Nelson Ortiz Perez Quinn Rossi Scott
Taylor Usman Vega Walker Yamada Ali Bell Cole Dean Fox Gray Hill Ivanov James Kim Lang Moore Nash Owens Patel Ross Silva Tran Webb Wood Wright""".split(
)
CAPITALS = """France:Paris Germany:Berlin Italy:Rome Spain:Madrid Portugal:Lisbon England:London Scotland:Edinburgh Wales:Cardiff Ireland:Dublin
Norway:Oslo Sweden:Stockholm Denmark:Copenhagen Finland:Helsinki Iceland:Reykjavik Poland:Warsaw Austria:Vienna Switzerland:Bern Belgium:Brussels
Netherlands:Amsterdam Greece:Athens Turkey:Ankara Russia:Moscow Ukraine:Kyiv Hungary:Budapest Romania:Bucharest Bulgaria:Sofia Serbia:Belgrade
Croatia:Zagreb Slovenia:Ljubljana Slovakia:Bratislava Estonia:Tallinn Latvia:Riga Lithuania:Vilnius Belarus:Minsk Albania:Tirana Malta:Valletta
Cyprus:Nicosia Egypt:Cairo Morocco:Rabat Algeria:Algiers Tunisia:Tunis Libya:Tripoli Sudan:Khartoum Ethiopia:Addis_Ababa Kenya:Nairobi
Uganda:Kampala Tanzania:Dodoma Rwanda:Kigali Ghana:Accra Nigeria:Abuja Senegal:Dakar Mali:Bamako Angola:Luanda Zambia:Lusaka Zimbabwe:Harare
Namibia:Windhoek Botswana:Gaborone Madagascar:Antananarivo Somalia:Mogadishu Cameroon:Yaounde China:Beijing Japan:Tokyo India:New_Delhi
Pakistan:Islamabad Bangladesh:Dhaka Nepal:Kathmandu Bhutan:Thimphu Thailand:Bangkok Vietnam:Hanoi Laos:Vientiane Cambodia:Phnom_Penh
Malaysia:Kuala_Lumpur Indonesia:Jakarta Philippines:Manila Mongolia:Ulaanbaatar Taiwan:Taipei Singapore:Singapore Iran:Tehran Iraq:Baghdad
Syria:Damascus Lebanon:Beirut Jordan:Amman Kuwait:Kuwait_City Qatar:Doha Oman:Muscat Yemen:Sanaa Afghanistan:Kabul Kazakhstan:Astana
Uzbekistan:Tashkent Georgia:Tbilisi Armenia:Yerevan Azerbaijan:Baku Canada:Ottawa Mexico:Mexico_City Cuba:Havana Jamaica:Kingston
Haiti:Port-au-Prince Guatemala:Guatemala_City Honduras:Tegucigalpa Nicaragua:Managua Panama:Panama_City Colombia:Bogota Venezuela:Caracas
Ecuador:Quito Peru:Lima Chile:Santiago Argentina:Buenos_Aires Uruguay:Montevideo Paraguay:Asuncion Brazil:Brasilia Australia:Canberra
Fiji:Suva Samoa:Apia Luxembourg:Luxembourg Monaco:Monaco Mozambique:Maputo Malawi:Lilongwe Gabon:Libreville Chad:N'Djamena Niger:Niamey""".split(
)
CAPITALS = [tuple(x.replace("_", " ").split(":"))
            for x in CAPITALS] + [("South Korea", "Seoul"), ("North Korea", "Pyongyang"), ("Saudi Arabia", "Riyadh"),
                                  ("Sri Lanka", "Colombo"), ("New Zealand", "Wellington"),
                                  ("the United States", "Washington, D.C."), ("the United Kingdom", "London"),
                                  ("South Africa", "Pretoria"), ("Costa Rica", "San Jose"), ("the Czech Republic", "Prague"),
                                  ("El Salvador", "San Salvador"), ("Bolivia", "Sucre")]
CITIES = sorted({c
                 for _, c in CAPITALS if "," not in c and len(c) < 12}
                | set("""Boston Chicago Denver Seattle Austin Dallas Houston Miami
Toronto Montreal Vancouver Hamburg Munich Cologne Milan Naples Turin Venice Florence Lyon Nice Porto Seville Valencia Barcelona Geneva Zurich
Basel Rotterdam Antwerp Ghent Glasgow Leeds Bristol York Oxford Bath Cork Bergen Malmo Gdansk Krakow Graz Osaka Kyoto Nagoya Busan Shanghai
Mumbai Chennai Pune Lahore Karachi Cebu Perth Sydney Brisbane Adelaide Auckland Durban Lagos Kano Mombasa Cusco Rosario Salvador Recife"""
                      .split()))
STREETS = "Oak Elm Pine Maple Cedar Birch Lake Hill River Park Main High Mill Church Station Bridge Garden Forest King Queen Spring Market North South West East".split(
)
ANIMALS = """dog cat horse cow pig sheep goat rabbit mouse rat lion tiger bear wolf fox deer elephant giraffe zebra monkey panda kangaroo
koala camel donkey squirrel hedgehog beaver otter seal whale dolphin shark frog toad snake lizard turtle crocodile eagle owl duck goose swan
chicken parrot crow sparrow penguin ostrich bee ant spider butterfly snail crab lobster octopus badger moose bison""".split()
FRUITS = "apple banana orange pear peach plum grape cherry lemon lime mango kiwi melon apricot fig papaya pineapple strawberry raspberry blueberry blackberry coconut".split(
)
VEGS = "carrot potato onion tomato cabbage spinach pea bean lettuce celery broccoli cucumber pumpkin radish turnip leek garlic beetroot".split(
)
FOODS = "bread cheese butter rice pasta soup salad pizza sandwich cake pie cookie honey jam egg yogurt pancake noodles chocolate".split(
)
COLOURS = "red blue green yellow orange purple pink brown black white gray silver gold violet turquoise".split()
OBJECTS = """book pen pencil lamp chair table clock phone key bag box cup plate spoon fork knife bottle hat coat shoe sock glove scarf ring coin
map letter ticket candle basket bucket rope hammer nail saw drill ladder brush paint blanket pillow towel mirror camera radio guitar piano drum
violin flute bicycle car bus train boat ship kite ball doll puzzle lantern compass umbrella wallet notebook ruler eraser stapler stamp envelope""".split(
)
JOBS = """teacher doctor nurse farmer baker butcher pilot sailor driver painter writer singer actor dancer lawyer judge carpenter plumber
electrician gardener chef waiter tailor barber dentist engineer scientist librarian soldier fisherman mechanic builder clerk poet potter""".split(
)
PLACES = """park garden kitchen library school museum market station hospital theatre forest beach farm castle harbour church bakery office
cafe bridge tower cave valley village lake river island mountain shop stable barn cellar attic hotel zoo gym""".split()
SPORTS = "tennis football chess hockey golf rugby swimming skiing cricket basketball volleyball cycling running rowing boxing judo".split(
)
CLOTHES = "hat coat shirt jacket dress skirt scarf glove sock shoe boot belt sweater".split()
VEHICLES = "car bus train truck boat ship bicycle motorcycle tram taxi van ferry tractor".split()
INSTRUMENTS = "guitar piano violin drum flute trumpet harp cello clarinet organ".split()
TOOLS_ = "hammer saw drill wrench screwdriver shovel rake axe pliers chisel".split()
CATS = [("animal", ANIMALS), ("fruit", FRUITS), ("vegetable", VEGS), ("colour", COLOURS), ("job", JOBS), ("sport", SPORTS),
        ("vehicle", VEHICLES), ("instrument", INSTRUMENTS), ("tool", TOOLS_)]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MLEN = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ADJ = """small big old new red blue quiet loud bright dark cold warm happy sad brave shy clever silly kind gentle quick slow young tall short
round soft hard wet dry clean dusty shiny rusty wooden golden silver heavy light strong weak busy lazy hungry sleepy proud curious""".split(
)
FACTS = [("How many days are in a week?", "There are 7 days in a week."),
         ("How many months are in a year?", "There are 12 months in a year."),
         ("How many hours are in a day?", "There are 24 hours in a day."),
         ("How many minutes are in an hour?", "There are 60 minutes in an hour."),
         ("How many seconds are in a minute?", "There are 60 seconds in a minute."),
         ("How many days are in a year?", "A normal year has 365 days and a leap year has 366."),
         ("How many weeks are in a year?", "There are about 52 weeks in a year."),
         ("How many letters are in the English alphabet?", "The English alphabet has 26 letters."),
         ("List the days of the week.", "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
         ("List the months of the year.",
          "January, February, March, April, May, June, July, August, September, October, November, December"),
         ("Name the four seasons.", "Spring, summer, autumn and winter."),
         ("What are the primary colours?", "Red, yellow and blue."),
         ("What colour is the sky?", "On a clear day the sky is blue."), ("What colour is grass?", "Grass is green."),
         ("What colour is snow?", "Snow is white."), ("What colour is a banana?", "A ripe banana is yellow."),
         ("How many legs does a spider have?", "A spider has 8 legs."), ("How many legs does a dog have?", "A dog has 4 legs."),
         ("How many legs does an insect have?", "An insect has 6 legs."),
         ("How many legs does a bird have?", "A bird has 2 legs."), ("What do bees make?", "Bees make honey."),
         ("What do cows drink?", "Cows drink water."), ("What do cows eat?", "Cows eat grass."),
         ("What is the largest planet?", "Jupiter is the largest planet in the solar system."),
         ("What is the smallest planet?", "Mercury is the smallest planet in the solar system."),
         ("Which planet is closest to the Sun?", "Mercury is closest to the Sun."),
         ("Which planet do we live on?", "We live on Earth."),
         ("List the planets.", "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus, Neptune"),
         ("What is the largest ocean?", "The Pacific Ocean is the largest ocean."),
         ("What is the longest river?", "The Nile is often called the longest river."),
         ("What is the highest mountain?", "Mount Everest is the highest mountain."),
         ("How many continents are there?", "There are 7 continents."),
         ("List the continents.", "Africa, Antarctica, Asia, Europe, North America, Oceania, South America"),
         ("At what temperature does water boil?", "Water boils at 100 degrees Celsius at sea level."),
         ("At what temperature does water freeze?", "Water freezes at 0 degrees Celsius."),
         ("What is water made of?", "Water is made of hydrogen and oxygen, H2O."), ("What is ice?", "Ice is frozen water."),
         ("What is the chemical formula of water?", "H2O"), ("How many sides does a triangle have?", "A triangle has 3 sides."),
         ("How many sides does a square have?", "A square has 4 sides."),
         ("How many sides does a hexagon have?", "A hexagon has 6 sides."),
         ("How many degrees are in a right angle?", "A right angle has 90 degrees."),
         ("How many degrees are in a circle?", "A circle has 360 degrees."),
         ("What is pi?", "Pi is the ratio of a circle's circumference to its diameter, about 3.14159."),
         ("Who wrote Hamlet?", "William Shakespeare wrote Hamlet."),
         ("Who wrote Romeo and Juliet?", "William Shakespeare wrote Romeo and Juliet."),
         ("What is the Sun?", "The Sun is a star."), ("What is the Moon?", "The Moon is Earth's natural satellite."),
         ("How many bits are in a byte?", "There are 8 bits in a byte."),
         ("How many bytes are in a kilobyte?", "A kilobyte is 1000 bytes; a kibibyte is 1024 bytes."),
         ("What does CPU stand for?", "CPU stands for central processing unit."),
         ("What does GPU stand for?", "GPU stands for graphics processing unit."),
         ("What does RAM stand for?", "RAM stands for random access memory."),
         ("What does HTML stand for?", "HTML stands for hypertext markup language."),
         ("What does URL stand for?", "URL stands for uniform resource locator."),
         ("What does JSON stand for?", "JSON stands for JavaScript object notation."),
         ("What does SQL stand for?", "SQL stands for structured query language."),
         ("What is Python?", "Python is a programming language."), ("What is Rust?", "Rust is a programming language."),
         ("What is C?", "C is a programming language."), ("What is PostgreSQL?", "PostgreSQL is a relational database."),
         ("What is SQLite?", "SQLite is a small embedded SQL database."),
         ("What is Linux?", "Linux is an operating system kernel."), ("What comes after Monday?", "Tuesday"),
         ("What is the opposite of up?", "The opposite of up is down."), ("What sound does a dog make?", "A dog barks."),
         ("What sound does a cat make?", "A cat meows."), ("What sound does a cow make?", "A cow moos."),
         ("What language is spoken in France?", "French is spoken in France."),
         ("What language is spoken in Germany?", "German is spoken in Germany."),
         ("What language is spoken in Spain?", "Spanish is spoken in Spain."),
         ("What language is spoken in Brazil?", "Portuguese is spoken in Brazil."),
         ("What language is spoken in Japan?", "Japanese is spoken in Japan."), ]
JOKES = [
    "Why did the scarecrow get a prize? Because he was outstanding in his field.",
    "What do you call a fish with no eyes? A fsh.", "Why was the math book sad? It had too many problems.",
    "What has four wheels and flies? A garbage truck.", "Why did the bicycle fall over? It was two tired.",
    "What do you call a sleeping bull? A bulldozer."
]
WHO = "I am a very small language model, trained from scratch. I can do sums, sort and look up things in lists, spell, count letters, change case, copy text, use tools and answer questions about a short passage."
CAN = "I can add and subtract, compare and sort numbers, spell and reverse words, count letters, change case, copy text exactly, look things up in a list you give me, fill in JSON, do simple date and unit sums, read Roman numerals, call tools and answer questions about a short passage."
CHAT = [([
    "Hello", "Hi", "Hey", "Hello!", "Hi there", "Hey there!", "Good morning", "Good evening", "Good afternoon", "hello there",
    "hi!", "Greetings", "yo"
], "Hello! How can I help you?"),
        (["How are you?", "How are you doing?", "How's it going?", "how are you today",
          "Are you well?"], "I am well, thank you. How can I help you?"),
        ([
            "Who are you?", "What are you?", "Tell me about yourself.", "Introduce yourself.", "Are you a robot?",
            "Are you a person?", "Are you human?", "What is your name?", "What's your name?", "who made you",
            "What model are you?", "Which model are you?"
        ], WHO),
        ([
            "What can you do?", "Help", "help", "What can I ask you?", "How can you help me?", "What are you good at?",
            "What are your abilities?", "how do I use you", "What should I ask?"
        ], CAN),
        (["Thanks", "Thank you", "Thanks!", "Thank you very much.", "thanks a lot", "Great, thanks.", "Cheers",
          "ok thanks"], "You are welcome!"),
        (["Bye", "Goodbye", "See you later", "Good night", "bye!", "See you", "Farewell"], "Goodbye!"),
        (["Good job", "Well done", "Nice", "Great", "Very good!", "You are smart", "I like you"], "Thank you!"),
        (["You are wrong", "That is wrong", "No, that is not right.",
          "wrong"], "I am sorry. I am a very small model and I make mistakes. Please try again with a simpler question."),
        (["Test", "test", "testing", "Ping", "ping", "Are you there?", "Can you hear me?",
          "Is this working?"], "Yes, I am here. How can I help you?"),
        (["OK", "ok", "Okay", "Yes", "yes", "No", "no", "Sure"], "All right. What would you like to do?"), ]
HARD = [
    "Write an essay about the French Revolution.", "Prove the Riemann hypothesis.", "What will the stock market do tomorrow?",
    "Write a novel.", "What happened in the news today?", "Diagnose my illness.", "Who will win the election?",
    "Explain quantum field theory.", "Write my thesis.", "What is the weather right now?", "What time is it now?",
    "What is today's date?", "Summarise this book for me.", "Translate this page into French.", "Give me legal advice.",
    "Compose a symphony.", "Book me a flight.", "Order a pizza for me.", "Tell me who I am.", "What is my password?",
    "What am I thinking?", "What did I eat yesterday?", "How old am I?", "Where do I live?", "Who is the president?",
    "What is the meaning of life?"
]
CANT = "I am sorry, I cannot do that. I am a very small model."
CODE = [
    ("prints hello world", {
        "Python": 'print("Hello, world!")',
        "C": '#include <stdio.h>\n\nint main(void) {\n    printf("Hello, world!\\n");\n    return 0;\n}',
        "JavaScript": 'console.log("Hello, world!");', "Rust": 'fn main() {\n    println!("Hello, world!");\n}',
        "Go": 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("Hello, world!")\n}',
        "Java": 'public class Main {\n    public static void main(String[] args) {\n        System.out.println("Hello, world!");\n    }\n}',
        "Bash": 'echo "Hello, world!"', "SQL": "SELECT 'Hello, world!';"
    }),
    ("adds two numbers", {
        "Python": "def add(a, b):\n    return a + b", "C": "int add(int a, int b) {\n    return a + b;\n}",
        "JavaScript": "function add(a, b) {\n  return a + b;\n}", "Rust": "fn add(a: i32, b: i32) -> i32 {\n    a + b\n}"
    }),
    ("returns the larger of two numbers", {
        "Python": "def larger(a, b):\n    return a if a > b else b",
        "C": "int larger(int a, int b) {\n    return a > b ? a : b;\n}",
        "JavaScript": "function larger(a, b) {\n  return a > b ? a : b;\n}",
        "Rust": "fn larger(a: i32, b: i32) -> i32 {\n    if a > b { a } else { b }\n}"
    }),
    ("checks if a number is even", {
        "Python": "def is_even(n):\n    return n % 2 == 0", "C": "int is_even(int n) {\n    return n % 2 == 0;\n}",
        "JavaScript": "function isEven(n) {\n  return n % 2 === 0;\n}",
        "Rust": "fn is_even(n: i32) -> bool {\n    n % 2 == 0\n}"
    }),
    ("computes the factorial of n", {
        "Python": "def factorial(n):\n    result = 1\n    for i in range(2, n + 1):\n        result *= i\n    return result",
        "C": "long factorial(int n) {\n    long result = 1;\n    for (int i = 2; i <= n; i++)\n        result *= i;\n    return result;\n}",
        "JavaScript": "function factorial(n) {\n  let result = 1;\n  for (let i = 2; i <= n; i++) result *= i;\n  return result;\n}"
    }),
    ("computes the n-th Fibonacci number", {
        "Python": "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a",
        "C": "long fib(int n) {\n    long a = 0, b = 1;\n    for (int i = 0; i < n; i++) {\n        long t = a + b;\n        a = b;\n        b = t;\n    }\n    return a;\n}"
    }),
    ("reverses a string", {
        "Python": "def reverse(s):\n    return s[::-1]",
        "JavaScript": 'function reverse(s) {\n  return s.split("").reverse().join("");\n}',
        "Rust": "fn reverse(s: &str) -> String {\n    s.chars().rev().collect()\n}"
    }),
    ("sums a list of numbers", {
        "Python": "def total(numbers):\n    result = 0\n    for n in numbers:\n        result += n\n    return result",
        "C": "int total(const int *numbers, int n) {\n    int result = 0;\n    for (int i = 0; i < n; i++)\n        result += numbers[i];\n    return result;\n}",
        "JavaScript": "function total(numbers) {\n  return numbers.reduce((a, b) => a + b, 0);\n}"
    }),
    ("counts from 1 to 10", {
        "Python": "for i in range(1, 11):\n    print(i)", "C": 'for (int i = 1; i <= 10; i++)\n    printf("%d\\n", i);',
        "JavaScript": "for (let i = 1; i <= 10; i++) {\n  console.log(i);\n}",
        "Rust": 'for i in 1..=10 {\n    println!("{}", i);\n}', "Bash": "for i in $(seq 1 10); do\n  echo $i\ndone"
    }),
]
FACTS += [
    ("What is the largest country?", "Russia is the largest country by area."),
    ("What is the smallest country?", "Vatican City is the smallest country."),
    ("What is the largest animal?", "The blue whale is the largest animal."),
    ("What is the fastest land animal?", "The cheetah is the fastest land animal."),
    ("What is the tallest animal?", "The giraffe is the tallest animal."),
    ("Why is the sky blue?", "The sky is blue because air scatters blue light more than red light."),
    ("Why is grass green?", "Grass is green because of chlorophyll."),
    ("How many bones are in the human body?", "An adult human has 206 bones."),
    ("How many teeth does an adult have?", "An adult has 32 teeth."),
    ("How many fingers does a hand have?", "A hand has 5 fingers."),
    ("How many players are in a football team?", "A football team has 11 players on the field."),
    ("How many strings does a guitar have?", "A guitar usually has 6 strings."),
    ("How many strings does a violin have?", "A violin has 4 strings."),
    ("How many squares are on a chess board?", "A chess board has 64 squares."),
    ("Who was Albert Einstein?", "Albert Einstein was a physicist known for the theory of relativity."),
    ("Who was Isaac Newton?", "Isaac Newton was a physicist and mathematician known for the laws of motion and gravity."),
    ("Who was William Shakespeare?", "William Shakespeare was an English playwright and poet."),
    ("Who was Leonardo da Vinci?", "Leonardo da Vinci was an Italian painter and inventor."),
    ("Who painted the Mona Lisa?", "Leonardo da Vinci painted the Mona Lisa."),
    ("Who was Marie Curie?", "Marie Curie was a scientist known for her work on radioactivity."),
    ("Who was Charles Darwin?", "Charles Darwin was a naturalist known for the theory of evolution."),
    ("Who was Alan Turing?", "Alan Turing was a mathematician and a founder of computer science."),
    ("Who was Ada Lovelace?", "Ada Lovelace was a mathematician who wrote about the first computers."),
    ("Who invented the telephone?", "Alexander Graham Bell is credited with inventing the telephone."),
    ("Who invented the light bulb?", "Thomas Edison is credited with the practical light bulb."),
    ("Who discovered America?", "Christopher Columbus reached America in 1492."),
    ("Who was the first man on the Moon?", "Neil Armstrong was the first man on the Moon, in 1969."),
    ("When did World War II end?", "World War II ended in 1945."), ("When did World War I begin?",
                                                                    "World War I began in 1914."),
    ("What is gravity?", "Gravity is the force that pulls things with mass together."),
    ("What is light?", "Light is electromagnetic radiation that we can see."),
    ("What is the speed of light?", "Light travels at about 300,000 kilometres per second."),
    ("What is photosynthesis?", "Photosynthesis is how plants make sugar from light, water and carbon dioxide."),
    ("What is an atom?", "An atom is the smallest unit of a chemical element."),
    ("What is a molecule?", "A molecule is a group of atoms held together."),
    ("What is DNA?", "DNA is the molecule that carries genetic information."),
    ("What is oxygen?", "Oxygen is a gas that we breathe."), ("What gas do plants breathe in?",
                                                              "Plants take in carbon dioxide."),
    ("What is the hottest planet?", "Venus is the hottest planet."),
    ("Which planet is called the red planet?", "Mars is called the red planet."),
    ("Which planet has rings?", "Saturn is known for its rings."),
    ("How many planets are there?", "There are 8 planets in the solar system."),
    ("What is the closest star to Earth?", "The Sun is the closest star to Earth."),
    ("How far away is the Moon?", "The Moon is about 384,000 kilometres away."),
    ("How old is the Earth?", "The Earth is about 4.5 billion years old."), ("Is the Earth flat?", "No, the Earth is round."),
    ("What is a prime number?", "A prime number has exactly two divisors, 1 and itself."),
    ("What are the first five prime numbers?", "2, 3, 5, 7, 11"),
    ("What is a square?", "A square is a shape with four equal sides and four right angles."),
    ("What is a circle?", "A circle is the set of points at the same distance from a centre."),
    ("What is a triangle?", "A triangle is a shape with three sides."),
    ("How many degrees are in a triangle?", "The angles of a triangle add up to 180 degrees."),
    ("What is half of 100?", "Half of 100 is 50."),
    ("How many centimetres are in a metre?", "There are 100 centimetres in a metre."),
    ("How many zeros are in a million?", "A million has 6 zeros."),
    ("How many zeros are in a thousand?", "A thousand has 3 zeros."), ("What is a dozen?", "A dozen is 12."),
    ("What is a computer?", "A computer is a machine that runs programs."),
    ("What is a program?", "A program is a list of instructions for a computer."),
    ("What is an algorithm?", "An algorithm is a step by step way to solve a problem."),
    ("What is a database?", "A database is an organised collection of data."),
    ("What is a compiler?", "A compiler translates source code into machine code."),
    ("What is an operating system?", "An operating system manages the hardware and the programs of a computer."),
    ("What is the internet?", "The internet is a worldwide network of computers."),
    ("What is a language model?", "A language model is a program that predicts the next word of a text."),
    ("What is artificial intelligence?",
     "Artificial intelligence is the study of machines that do tasks which need intelligence."),
    ("What is a neural network?", "A neural network is a model made of simple connected units that learns from data."),
    ("What is quantisation?", "Quantisation stores numbers with fewer bits."),
    ("What is a token?", "A token is a piece of text that a language model reads as one unit."),
    ("What is a bug?", "A bug is an error in a program."), ("What is a byte?", "A byte is a group of 8 bits."),
    ("What is a bit?", "A bit is a 0 or a 1."),
    ("What is open source?", "Open source software has source code that anyone may read and change."),
    ("What does HTTP stand for?", "HTTP stands for hypertext transfer protocol."),
    ("What does PDF stand for?", "PDF stands for portable document format."),
    ("What does USB stand for?", "USB stands for universal serial bus."),
    ("What does AI stand for?", "AI stands for artificial intelligence."),
    ("What does API stand for?", "API stands for application programming interface."),
    ("What does XML stand for?", "XML stands for extensible markup language."),
    ("What does CSV stand for?", "CSV stands for comma separated values."),
    ("What does OS stand for?", "OS stands for operating system."),
    ("What language is spoken in Italy?", "Italian is spoken in Italy."),
    ("What language is spoken in China?", "Chinese is spoken in China."),
    ("What language is spoken in Russia?", "Russian is spoken in Russia."),
    ("What language is spoken in Mexico?", "Spanish is spoken in Mexico."),
    ("What language is spoken in England?", "English is spoken in England."),
    ("What is the currency of Japan?", "The currency of Japan is the yen."),
    ("What is the currency of the United Kingdom?", "The currency of the United Kingdom is the pound."),
    ("What is the currency of the United States?", "The currency of the United States is the dollar."),
    ("What is the currency of Germany?", "The currency of Germany is the euro."),
    ("On which continent is Egypt?", "Egypt is in Africa."), ("On which continent is Brazil?", "Brazil is in South America."),
    ("On which continent is China?", "China is in Asia."), ("On which continent is France?", "France is in Europe."),
    ("On which continent is Canada?", "Canada is in North America."),
    ("What do you call a baby dog?", "A baby dog is called a puppy."),
    ("What do you call a baby cat?", "A baby cat is called a kitten."),
    ("What do you call a baby cow?", "A baby cow is called a calf."),
    ("What do you call a baby sheep?", "A baby sheep is called a lamb."),
    ("What do you call a baby horse?", "A baby horse is called a foal."), ("What sound does a sheep make?", "A sheep bleats."),
    ("What sound does a lion make?", "A lion roars."), ("What sound does a duck make?", "A duck quacks."),
    ("Which month has 28 days?", "February has 28 days, and 29 in a leap year."),
    ("What comes after winter?", "Spring comes after winter."), ("In which season does it snow?", "It snows in winter."),
    ("What is the first month of the year?", "January is the first month of the year."),
    ("What is the last month of the year?", "December is the last month of the year."),
    ("What is the first letter of the alphabet?", "The first letter of the alphabet is A."),
    ("What is the last letter of the alphabet?", "The last letter of the alphabet is Z."), ("List the vowels.",
                                                                                            "a, e, i, o, u"),
    ("Write the alphabet.", "a b c d e f g h i j k l m n o p q r s t u v w x y z"),
    ("Count to ten.", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
    ("What are the colours of the rainbow?", "Red, orange, yellow, green, blue, indigo and violet."),
    ("What colour do you get if you mix blue and yellow?", "Blue and yellow make green."),
    ("What colour do you get if you mix red and yellow?", "Red and yellow make orange."),
    ("What colour do you get if you mix red and blue?", "Red and blue make purple."), ("What colour is blood?",
                                                                                       "Blood is red."),
    ("What colour is the sun?", "The sun looks yellow."), ("What colour is an orange?", "An orange is orange."),
    ("What is 1 + 1?", "1 + 1 = 2"),
    ("Write a haiku.", "Quiet morning rain\nfalls on the old garden wall\na bird waits and sings"),
    ("Write a poem.",
     "The rain is soft, the night is long,\nthe wind outside hums half a song;\nthe lamp is low, the page is bright,\nand words walk slowly through the night."
     ), ("Say something.", "Hello! I am a very small language model."),
    ("What is your favourite colour?", "I am a program, so I have no favourite colour."),
    ("How old are you?", "I am a program, so I have no age."),
    ("Where are you from?", "I was trained from scratch on one GPU in a few minutes."),
    ("Do you have feelings?", "No, I am a program and have no feelings."),
    ("Can you think?", "I can write down simple steps before I answer, but I am only a small program."),
    ("How many parameters do you have?", "I have about 7.7 million parameters."),
    ("What architecture do you use?", "I use the Qwen3.5 text architecture, a hybrid of Gated DeltaNet and attention layers."),
    ("Can you speak French?", "No, I only know simple English."), ("Do you speak German?", "No, I only know simple English."),
    ("Can you see images?", "No, I only read text."),
    ("Can you write code?", "I know a few very small examples, such as hello world in several languages."),
]
OPEN = """Write an essay about {n}.|Write a poem about {n}.|Write a song about {n}.|Write a report on {n} and {m}.|Explain {n} to a child.|Explain how {n} works.|How does {n} work?|How do I make {n}?|How can I fix my {n}?|Why is {n} important?|Why do people like {n}?|
Why does {n} happen?|What is the best {n}?|What is the history of {n}?|Who invented {n}?|When was {n} invented?|Who is {p}?|Who was {p}?|Tell me about {p}.|What did {p} do?|When was {p} born?|Where is {p} from?|How old is {p}?|What is the phone number of {p}?|
Give me advice about {n}.|Give me a recipe for {n}.|Recommend a book about {n}.|Recommend a film.|Plan a trip to {c}.|What should I do in {c}?|How many people live in {c}?|How far is it from {c} to {d}?|What is the weather in {c}?|What is the news in {c}?|
Translate {n} into French.|How do you say {n} in German?|What is {n} in Spanish?|Compare {n} and {m}.|What is the difference between {n} and {m}?|Is {n} better than {m}?|Should I buy {n}?|How much does {n} cost?|What do you think about {n}?|Write a program that plays {n}.|
Write a website for {n}.|Write a letter to {p}.|Summarise the book about {n}.|Debate {n}.|Prove that {n} exists.|Solve the equation x^2 + {k}x = {j}.|What is the square root of {k}?|What is the derivative of x^{k}?|What happened in {y}?|Who won the world cup in {y}?|
Who was the president in {y}?|What will happen in {y}?|Draw a picture of {n}.|Play {n}.|Call {p}.|Find a job for me.|Do my homework about {n}.|What does my {n} look like?|Where did I put my {n}?|Why is my {n} broken?|What should I eat today?|What should I wear?""".replace(
    "\n", "").split("|")
