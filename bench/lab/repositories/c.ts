/** Repositories in C, built by make with the compiler of the system. */
import { changeAndTest, run } from '../model.ts';
import type { Conversation, Task, Work } from '../task.ts';
import { tabbed, text } from '../text.ts';

const test = 'make -s test 2>&1';
const fix = 'A test of this project fails. Find the cause, fix it, and run the tests.';
const ignored = { '.gitignore': 'tests\n*.o\n' };

const makefileOf = (sources: string): string =>
  'CFLAGS = -Wall -g\n\ntests: ' +
  sources +
  '\n\t$(CC) $(CFLAGS) -o $@ $(filter %.c,$^)\n\ntest: tests\n\t./tests\n\n.PHONY: test\n';

const search = text`
    #include "search.h"

    int search(const int *values, int count, int wanted) {
        int low = 0, high = count - 1;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (values[middle] == wanted) return middle;
            if (values[middle] < wanted) low = middle + 1;
            else high = middle - 1;
        }
        return -1;
    }
`;
const searchHead = 'int search(const int *values, int count, int wanted);\n';
const searchTest = text`
    #include <assert.h>
    #include <stdio.h>
    #include "search.h"

    int main(void) {
        int values[] = {1, 3, 5};
        assert(search(values, 3, 1) == 0);
        assert(search(values, 3, 5) == 2);
        assert(search(values, 3, 4) == -1);
        puts("all tests passed");
    }
`;

const ring = tabbed`
    #include "ring.h"

    int ring_put(struct ring *ring, int value) {
        if (ring->used == RING_SIZE) {
            if (!ring->overwrite) {
                return 0;
            }
            ring->used--;
        }
        ring->values[(ring->first + ring->used) % RING_SIZE] = value;
        ring->used++;
        return 1;
    }
`;
const ringHead = text`
    #define RING_SIZE 4
    struct ring { int values[RING_SIZE]; int first, used, overwrite; };
    int ring_put(struct ring *ring, int value);
`;
const ringTest = text`
    #include <assert.h>
    #include <stdio.h>
    #include "ring.h"

    int main(void) {
        struct ring ring = {.overwrite = 1};
        for (int value = 1; value <= 5; value++) assert(ring_put(&ring, value));
        assert(ring.first == 1 && ring.used == 4);
        assert(ring.values[ring.first] == 2);
        puts("all tests passed");
    }
`;

const twice = 'int twice(int value) {\n    return value + value;\n}\n';
const twiceTest = text`
    #include <stdio.h>
    int twice(int value);

    int main(void) {
        puts(twice(2) == 4 ? "all tests passed" : "wrong");
    }
`;

const trim = text`
    #include <ctype.h>
    #include <string.h>

    void trim(char *text) {
        char *end = text + strlen(text);
        while (end > text && isspace((unsigned char)end[-1])) end--;
        char *start = text;
        while (isspace((unsigned char)*start)) start++;
        memmove(text, start, (size_t)(end - start));
    }
`;
const trimTest = text`
    #include <assert.h>
    #include <stdio.h>
    #include <string.h>
    void trim(char *text);

    int main(void) {
        char text[] = "  a b ";
        trim(text);
        assert(strcmp(text, "a b") == 0);
        char blank[] = "   ";
        trim(blank);
        assert(strcmp(blank, "") == 0);
        puts("all tests passed");
    }
`;

const area = 'double area(double width);\n';
const areaBody = '#include "area.h"\n\ndouble area(double width) {\n    return width * width;\n}\n';
const areaTest = text`
    #include <assert.h>
    #include <stdio.h>
    #include "area.h"

    int main(void) {
        assert(area(2, 3) == 6);
        puts("all tests passed");
    }
`;

const clock = [
  '/* Minutes of a day – 0 to 1439.\u00a0See “time.txt”. */',
  'int minutes(int hour, int minute) {',
  '    return hour * 24 + minute; /* hours – then minutes */',
  '}',
  '',
].join('\n');
const clockTest = text`
    #include <assert.h>
    #include <stdio.h>
    int minutes(int hour, int minute);

    int main(void) {
        assert(minutes(1, 30) == 90);
        puts("all tests passed");
    }
`;

const noisy = [
  ...Array.from({ length: 260 }, (_, index) => `static int unused_${index}(void) { int left; return ${index}; }`),
  'int answer(void) { return fourty_two; }',
  ...Array.from({ length: 260 }, (_, index) => `static int spare_${index}(void) { int left; return ${index}; }`),
  '',
].join('\n');
const noisyTest = text`
    #include <stdio.h>
    int answer(void);

    int main(void) {
        puts(answer() == 42 ? "all tests passed" : "wrong");
    }
`;

/** Looks for the error among hundreds of warnings where the output did not show it. */
function* workAmidWarnings(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files; cat Makefile')];
  yield [run(task.test)];
  if (!conversation.saw(/error: .fourty_two/)) yield [run(`${task.test} | grep -A 3 "error:"`)];
  yield [{ kind: 'read', path: 'noisy.c', from: 261, lines: 1 }];
  return yield* changeAndTest({ ...task, test: `${task.test} | tail -n 3` });
}

const hash = text`
    unsigned hash(const char *text) {
        unsigned value = 5381;
        for (; *text; text++) {
            value = value * 33 + *text;
        }
        return value % 97;
    }
`;
const hashTest = text`
    #include <assert.h>
    #include <stdio.h>
    unsigned hash(const char *text);

    int main(void) {
        assert(hash("\xff") == (5381u * 33 + 255) % 97);
        puts("all tests passed");
    }
`;

export const c: readonly Task[] = [
  {
    ...{ name: 'c-search', language: 'c', probes: 'nothing unusual', prompt: fix, test },
    files: {
      ...ignored,
      Makefile: makefileOf('search.c tests.c'),
      'search.c': search,
      'search.h': searchHead,
      'tests.c': searchTest,
    },
    changes: [{ path: 'search.c', edits: [{ old: 'while (low < high)', new: 'while (low <= high)' }] }],
  },
  {
    ...{ name: 'c-tabs', language: 'c', probes: 'eight blanks for a tab', prompt: fix, test },
    files: {
      ...ignored,
      Makefile: makefileOf('ring.c tests.c'),
      'ring.c': ring,
      'ring.h': ringHead,
      'tests.c': ringTest,
    },
    changes: [
      {
        ...{ path: 'ring.c', slip: 'wideBlanksForTabs' },
        edits: [
          {
            old: '\t\t\treturn 0;\n\t\t}\n\t\tring->used--;\n\t}',
            new: '\t\t\treturn 0;\n\t\t}\n\t\tring->first = (ring->first + 1) % RING_SIZE;\n\t\tring->used--;\n\t}',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'c-makefile', language: 'c', probes: 'a Makefile that needs tabs', prompt: fix, test },
    files: { ...ignored, Makefile: makefileOf('tests.c'), 'twice.c': twice, 'tests.c': twiceTest },
    changes: [
      {
        ...{ path: 'Makefile', slip: 'blanksForTabs' },
        edits: [
          {
            old: 'tests: tests.c\n\t$(CC) $(CFLAGS)',
            new: 'tests: tests.c twice.c\n\t$(CC) $(CFLAGS)',
          },
        ],
      },
    ],
    reads: ['Makefile', 'twice.c', 'tests.c'],
  },
  {
    ...{ name: 'c-fence', language: 'c', probes: 'a code fence around the text', prompt: fix, test },
    files: { ...ignored, Makefile: makefileOf('trim.c tests.c'), 'trim.c': trim, 'tests.c': trimTest },
    changes: [
      {
        ...{ path: 'trim.c', slip: 'codeFence' },
        edits: [
          {
            old: '    while (isspace((unsigned char)*start)) start++;\n    memmove(text, start, (size_t)(end - start));',
            new: '    while (start < end && isspace((unsigned char)*start)) start++;\n    memmove(text, start, (size_t)(end - start));\n    text[end - start] = 0;',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'c-header', language: 'c', probes: 'a header and its source', prompt: fix, test },
    files: {
      ...ignored,
      Makefile: makefileOf('area.c tests.c'),
      'area.c': areaBody,
      'area.h': area,
      'tests.c': areaTest,
    },
    changes: [
      { path: 'area.h', edits: [{ old: 'area(double width)', new: 'area(double width, double height)' }] },
      {
        path: 'area.c',
        edits: [
          { old: 'area(double width)', new: 'area(double width, double height)' },
          { old: 'width * width', new: 'width * height' },
        ],
      },
    ],
  },
  {
    ...{ name: 'c-odd-characters', language: 'c', probes: 'dashes, quotes and odd blanks', prompt: fix, test },
    files: { ...ignored, Makefile: makefileOf('clock.c tests.c'), 'clock.c': clock, 'tests.c': clockTest },
    changes: [
      {
        ...{ path: 'clock.c', slip: 'plainQuotes' },
        edits: [
          {
            old: '/* Minutes of a day – 0 to 1439.\u00a0See “time.txt”. */\nint minutes(int hour, int minute) {\n    return hour * 24 + minute;',
            new: '/* Minutes of a day – 0 to 1439.\u00a0See “time.txt”. */\nint minutes(int hour, int minute) {\n    return hour * 60 + minute;',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'c-warnings', language: 'c', probes: 'an error amid hundreds of warnings', prompt: fix, test },
    files: { ...ignored, Makefile: makefileOf('noisy.c tests.c'), 'noisy.c': noisy, 'tests.c': noisyTest },
    changes: [{ path: 'noisy.c', edits: [{ old: 'return fourty_two;', new: 'return 42;' }] }],
    work: workAmidWarnings,
  },
  {
    ...{ name: 'c-shallow', language: 'c', probes: 'indentation left out of a loop', prompt: fix, test },
    files: { ...ignored, Makefile: makefileOf('hash.c tests.c'), 'hash.c': hash, 'tests.c': hashTest },
    changes: [
      {
        ...{ path: 'hash.c', slip: 'dedented' },
        edits: [
          {
            old: '        value = value * 33 + *text;\n    }',
            new: '        value = value * 33 + (unsigned char)*text;\n    }',
          },
        ],
      },
    ],
  },
];
