/* The texts that bench's prompts are cut from: written for this purpose, ordinary prose, long enough for every condition of
 * the published tables. How a text is cut to a number of tokens is bench_prompts.c. */
#include "bench_prompts.h"

const char cli_bench_system_text[] = "You are a patient teacher who answers in plain words.";

const char cli_bench_user_text[] =
    "Explain in about three hundred words how a lighthouse was kept before electricity, and who did the work. "
    "A reader who has never seen the sea should be able to follow. Begin with the lamp. For a long time it burned oil "
    "pressed from fish or from seeds, later it burned paraffin, and it had to be trimmed every few hours, because a wick "
    "that grows too long begins to smoke and blackens the glass around it. A keeper climbed the stairs with a can in one "
    "hand and a rag in the other, and by the end of a winter night he had climbed them a dozen times. Behind the flame, or "
    "around it, stood the lens: rings of polished glass in a frame of brass, each ring bent a little more than the one "
    "inside it, so that light which would have gone to the sky or to the rocks left the tower as one level beam. The frame "
    "floated in a trough of mercury or rolled on small wheels, and a clockwork turned it. The weight of the clockwork hung "
    "on a rope in the middle of the stairs and had to be wound up again before it touched the floor. A captain who counted "
    "the seconds between two flashes knew from his list which tower it was, and so a mistake in the winding could put a "
    "ship on the shore as surely as a lamp that had gone out. When the weather closed in, the light was of no use, and a "
    "bell, a gun or a horn took its place. Somebody had to be awake for that as well. On the mainland a keeper lived with "
    "his family in a low house beside the tower, kept a garden and a cow, and sent his children to the village school when "
    "the road was dry. On a rock far from land three men shared two rooms, and the boat with the bread, the letters and "
    "the next crew came when the swell allowed it. They kept a book in which every hour of the night had its line: the "
    "wind, the state of the lamp, the ships that passed, the initials of the man on watch. Those books are dull to read "
    "and full of care. One of them notes, between the wind of four in the morning and the wind of five, that a small bird "
    "had struck the glass, that it was put in a box near the stove, and that it flew away after breakfast. Explain also "
    "what changed when the first electric lamps were hung in the old lenses, why the towers were not simply torn down, and "
    "what is done with the houses today. Mention the cost of oil, the price of glass, and the reason why some countries "
    "charged every passing ship a small fee. If something is uncertain, say so instead of guessing. Use short sentences, "
    "avoid numbers where a comparison will do, and end with one question that a child might ask about the person who "
    "blew out the last flame. Do not describe storms at length; there are enough books about storms. Tell instead how a "
    "quiet night went by, from the lighting of the lamp at dusk to the drawing of the curtains at sunrise, which protected "
    "the lens from the sun, since glass that gathers a flame into a beam will also gather the sun into a fire. Say what "
    "the keeper ate, how he stayed awake, what he could hear, and what he was afraid of. Then compare his work with that "
    "of a night nurse or a railway signalman, who also sat up so that strangers could travel or sleep in peace.";
