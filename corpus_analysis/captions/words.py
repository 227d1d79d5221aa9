"""Words by which the rules of extraction tell things from what only looks or sounds like them."""

from __future__ import annotations

QUANTITIES = frozenset(
    "pair couple group bunch herd flock pack crowd row line stack pile set team trio dozen "
    "dozens number order orders serving servings portion portions cluster clusters mound clump "
    "batch fleet swarm mixture mix half chunk chunks wedge wedges lot lots variety hundreds "
    "thousands handful pairs groups rows stacks piles bunches heap bundle bundles sets slice "
    "slices piece pieces peice peices roll rolls kind kinds type types selection assortment flight "
    "collection array plenty family case cases display displays arrangement arrangements sea load "
    "loads dollop dollops drizzle sprig sprigs".split()
)
"""Before "of X" they quantify X and are not entities: "a couple of dogs" shows dogs."""

PICKING = frozenset("one two three some many most several each both few".split())
"""Before "of the X" they pick some of X: "with one of the animals"."""

GROUPS = frozenset(("group", "team", "squad", "trio", "pair", "number"))
"""Quantities that on their own are people: "a group under umbrellas", but not "a group of X"."""

SETS = frozenset(("set", "sets", "combo"))
"""After the last of several things, they hold all of them: "a washer and dryer set"."""

MOVING = frozenset(
    "pass passes passing passed fly flies flying flew jump jumps jumping jumped leap leaps leaping "
    "walk walks walking walked run runs running ride rides riding drive drives driving sail sails "
    "sailing travel travels traveling cross crosses crossing climb climbs climbing skate skates "
    "skating step steps stepping crawl crawls crawling soar soars soaring".split()
)
"""Verbs whose particle says where: "passing over a bridge"."""

NO_ACTS = frozenset(
    "dressing pudding stuffing filling topping icing frosting seating lighting bedding wedding "
    "clothing painting drawing building ceiling morning evening spring string wing ring king "
    "sibling wiring flooring railing lining coating dining living".split()
)
"""Words in "-ing" that nobody does: "lemon dressing recipe", but "a lady cutting pizza"."""

ACTING = frozenset(
    "standing sitting lying laying walking running jumping flying swimming sleeping resting eating "
    "drinking riding hopping crouching kneeling leaning perching climbing dancing posing grazing "
    "playing looking hiding waiting landing roaring barking howling floating hanging hovering "
    "speeding moving passing traveling chasing strolling jogging marching performing singing "
    "speaking talking reading writing hiking "
    "diving smiling laughing yawning peeking rolling galloping trotting skating surfing paddling "
    "skiing foraging swinging gliding sailing drifting cut sliced".split()
)
"""Verbs that the tagger takes for nouns after who does it: "a kangaroo hopping"."""

DOING = frozenset(
    "arrive arrives attend attends talk talks embrace embraces kiss kisses hug hugs greet greets "
    "pose poses perform performs compete competes celebrate celebrates speak speaks laugh laughs "
    "chat chats stroll strolls wait waits walks runs sits stands flies drives rides swims "
    "backstage onstage closeup".split()
)
"""Verbs that the tagger takes for nouns after the name of who acts: "bride and groom arrive"."""

RESTING = frozenset("set sit stand rest lay lie paddle pose perch nap swim graze lean".split())
"""The same after several: "a man and a dog paddle on a board"."""

HANDLING = frozenset(
    "cutting slicing making cooking serving selling drinking preparing feeding opening pulling "
    "pushing throwing kicking hitting washing brushing fixing reading watching".split()
)
"""Verbs whose next word names the thing they act on: "a lady cutting pizza"."""

STUFFS = frozenset(("glass", "paper"))
"""Things that others are made of: "glass sinks"."""

SET_BACK = frozenset(
    "background backdrop foreground distance behind nearby overhead around side sides".split()
)
"""Where something is in an image, rather than in what is named before it: "a bus in a street with
a tower in the background"."""

GROUNDS = frozenset(("mountain", "stadium"))
"""Surfaces that somebody is "on" as on any ground."""

ALOFT = frozenset(
    "air sky water grass snow sand field middle tracks track road street path river".split()
)
"""Where somebody is "between" others: "hopping in the air between two statues"."""

SHELLS = frozenset(("shell", "tail"))
"""Parts of animals, where they are its own: "a turtle on its shell"."""

DEPICTIONS = frozenset(
    "photo photograph picture image portrait painting drawing sketch illustration shot view "
    "snapshot closeup print photos pictures images illustrations render rendering footage video "
    "clip screenshot cartoon artwork depiction paintings drawings sketches portraits shots "
    "scene silhouette silhouettes".split()
)
"""Before "of X" they depict X: in "photo of a cat and a dog", the parser joins photo and dog."""

GARNISHES = frozenset("frosting topping filling dressing stuffing coating".split())
"""After the name of a food, they are made of it."""

COATED = frozenset("frosted coated glazed dipped dusted flavored topped covered filled".split())
"""Between the name of a stuff and of what is made with it: "a chocolate frosted donut"."""

TAKING = frozenset("take takes taking took taken snap snaps snapping snapped".split())
"""Verbs of making an image."""

BOATS = frozenset("boat ship canoe rowboat raft cart wagon carriage sled".split())
"""Vehicles that are of wood and yet real."""

FIGURES = frozenset("statue sculpture relief figurine figure model bust replica".split())
"""Before "of X" they are a thing that looks like X."""

STUFFED = frozenset(("stuffed", "plush"))

TOYS = frozenset(("toy", "toys"))

FAKE = frozenset(
    "plastic model rubber inflatable wooden metal bronze stone marble clay ceramic porcelain paper "
    "cardboard origami knitted crocheted felt lego fake miniature carved sculpted".split()
)
"""Before the name of something that lives or drives, they make it a thing of its own kind."""

OFFSPRING = frozenset(("baby", "child", "mother", "father", "parent"))
"""Young of an animal, if the words say so: "a cow with its baby"."""

LINKS = frozenset(("to", "of", "from"))
"""Last words of multiword prepositions, after the place word."""

SURROUNDING = frozenset(
    "surrounded flanked accompanied parked seated moored docked anchored stationed located".split()
)
"""Participles whose agent stands beside their subject: "surrounded by trees"."""

WATCHING = frozenset(
    "look looks looking looked gaze gazes gazing stare stares staring watch watches watching "
    "smile smiles smiling focus focused".split()
)
"""Verbs whose preposition says where eyes go, not where things are."""

TOSSING = frozenset(
    "kick kicks kicking toss tosses tossing throw throws throwing pass passes passing play plays "
    "playing drag drags dragging fool fooling".split()
)
"""Verbs whose "around" says no place: "kicking around a ball"."""

DEALING = frozenset(
    "concentrate concentrates concentrating concentrated work works working worked depend depends "
    "rely relies report reports reporting comment comments commenting bet bets betting spend "
    "spends spending spy spies spying call calls calling called check checks checking knock knocks "
    "knocking cheer cheers cheering reflect reflects reflecting agree agrees raid raids attack "
    "attacks love loves".split()
)
"""Verbs whose "on" says what they are about."""

MINDING = frozenset(
    "do help helps helping helped corresponds obsessed happy pleased satisfied familiar popular "
    "bored impressed".split()
)
"""Before "with" they say what somebody thinks of."""

EATING = frozenset(
    "feed feeds feeding fed graze grazes grazing munch munches munching chew chews chewing nibble "
    "nibbles nibbling snack snacks snacking dine dines dining drag drags dragging puff puffs "
    "puffing suck sucks sucking".split()
)
"""Verbs whose "on" says what goes into the mouth."""

CLOTHES = frozenset(
    "top tops outfit outfits clothes clothing costume costumes attire gear uniform uniforms black "
    "white red blue green brown yellow pink purple gray grey".split()
)
"""Clothes of somebody who comes with something: "a woman in a blue top with headphones"."""

TEAMING = frozenset(
    "team teams teamed teaming pair pairs paired pairing match matches matched matching combine "
    "combines combined combining".split()
)
"""Verbs whose object "with" something else are both worn: "teamed boots with a dress"."""

WEARING = frozenset(
    "wear wears wearing wore don dons donned donning rock rocks rocked rocking sport sports "
    "sported sporting".split()
)
"""The same, if what follows "with" is worn."""

ALONE = frozenset(
    "smiling laughing sleeping jumping flying swimming running walking standing sitting lying "
    "floating hanging crying dancing boiling burning blooming steaming glowing melting falling "
    "growing spinning grazing galloping roaring barking yawning".split()
)
"""Verbs without an object: "smiling family with a dog"."""

PUT_DOWN = frozenset("lay lays laid laying hang hangs hung".split())
"""Verbs with an object only if somebody puts something."""

FLYING = frozenset(("fly", "flies", "flying", "flew"))
"""Verbs of people with a kite, who are near something meanwhile."""

POSTURES = frozenset(
    "sit sits sitting sat stand stands standing stood lie lies lying lay laying lays rest resting "
    "rests sleep sleeping sleeps asleep perched perching curled".split()
)

PUTTING = frozenset(
    "put puts putting place places placing placed throw throws throwing cook cooks cooking "
    "pour pours pouring fly flies flying flew breathe breathes breathing spread spreads "
    "spreading cut cuts cutting drop drops dropping serve serves serving draw draws drawing "
    "paint paints painting push pushes pushing load loads loading lift lifts lifting "
    "install installs installing attach attaches attaching".split()
)
"""Verbs whose object is on something, rather than who does it."""

DRESSING = frozenset("put puts putting try tries trying".split())
"""Verbs whose "on" without an object says what is worn: "she puts on her helmet"."""

FILLING = frozenset(
    "decorate decorates decorating fill fills filling cover covers covering top tops topping adorn "
    "adorns adorning garnish garnishes garnishing stuff stuffs stuffing".split()
)
"""Verbs whose object comes with something, rather than who does it."""

SCREENS = frozenset(
    "cell phone,telephone,television,radio,computer,laptop,camera,microphone,headphone,screen,"
    "controller".split(",")
)
"""Nobody stands on them: "a girl on her phone"."""

IMPRINTS = frozenset(
    "stock royalty photo photos photograph photographs photography image images picture pictures "
    "vector vectors illustration illustrations wallpaper editorial".split()
)
"""After a name in a title, they speak of the image and not of a thing."""

PRODUCTS = frozenset(
    (
        "greeting card",
        "card",
        "postcard",
        "poster",
        "sticker",
        "magnet",
        "mug",
        "puzzle",
        "mouse pad",
    )
)
"""Things that pictures are printed on."""

PLAYED = frozenset("play plays played playing".split())
"""Verbs of playing: music is not a thing, and nobody stands on an instrument."""

FIGHTING = frozenset(
    "action fight fights fighting match game race battle protest protests victory win wins won "
    "winning triumph".split()
)
"""Words before "against" or "over" somebody who need not be there."""

GAMES = frozenset("football soccer basketball baseball volleyball".split())
"""Balls, and what is played with them."""

COLORS = frozenset(
    "black white red green blue yellow purple pink brown gray grey beige teal turquoise navy gold "
    "golden silver ivory tan maroon aqua cyan magenta indigo orange".split()
)

HUES = frozenset(
    "orange rose peach lime olive salmon coral plum cherry lavender chocolate cream mustard "
    "violet lilac lemon".split()
)
"""Things that are colors as well: "orange & green"."""

IDIOMS = frozenset(
    {
        ("rock", "roll"),
        ("bed", "breakfast"),
        ("car", "driver"),
        ("mac", "cheese"),
        ("surf", "turf"),
        ("fish", "chips"),
        ("cat", "mouse"),
        ("fox", "friends"),
        ("cloak", "dagger"),
        ("hammer", "sickle"),
        ("skull", "crossbones"),
        ("rhythm", "blues"),
        ("drum", "bass"),
        ("head", "shoulders"),
        ("nuts", "bolts"),
        ("bread", "butter"),
        ("ball", "chain"),
        ("bar", "grill"),
        ("mommy", "me"),
        ("mom", "me"),
        ("daddy", "me"),
    }
)
"""Two words that "and" makes one, of what need not be there."""
