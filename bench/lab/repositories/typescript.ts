/** Repositories in TypeScript. Node runs the tests and strips the types itself. */
import { changeAndTest, read, run, usualWork } from '../model.ts';
import type { Conversation, Move, Task, Work } from '../task.ts';
import { crlf, tabbed, text } from '../text.ts';

const manifest = { 'package.json': '{ "type": "module", "scripts": { "test": "node --test" } }\n' };
const test = 'node --test 2>&1';
const fix = 'A test of this project fails. Find the cause, fix it, and run the tests.';

const pages = text`
    /** Number of pages for so many items. */
    export function pageCount(items: number, size: number): number {
      return Math.floor(items / size);
    }
`;
const pagesTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { pageCount } from './pages.ts';

    test('a part of a page is a page', () => {
      assert.equal(pageCount(11, 5), 3);
      assert.equal(pageCount(10, 5), 2);
    });
`;
const roundedUp = { old: '  return Math.floor(items / size);', new: '  return Math.ceil(items / size);' };

const stack = tabbed`
    export class Stack<T> {
        readonly #items: T[] = [];

        push(item: T): number {
            this.#items.push(item);
            return this.#items.length;
        }

        pop(): T | undefined {
            if (this.#items.length > 1) {
                return this.#items.pop();
            }
            return undefined;
        }
    }
`;
const stackTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { Stack } from './stack.ts';

    test('the last item comes out', () => {
      const stack = new Stack<number>();
      stack.push(7);
      assert.equal(stack.pop(), 7);
      assert.equal(stack.pop(), undefined);
    });
`;

const range = text`
    export function ranges(values: number[]): [number, number][] {
      const found: [number, number][] = [];
      for (const value of values) {
        const last = found.at(-1);
        if (last !== undefined) {
          if (value === last[1]) {
            last[1] = value;
            continue;
          }
        }
        found.push([value, value]);
      }
      return found;
    }
`;
const rangeTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { ranges } from './ranges.ts';

    test('neighbours are one range', () => {
      assert.deepEqual(ranges([1, 2, 3, 7]), [[1, 3], [7, 7]]);
    });
`;

const greeting = text`
    // “Dear” is for letters – never for messages.
    export const greeting = (name: string): string =>
      'Dear ' + name + ','; // as “house style” says
`;
const greetingTest = text`
    import assert from 'node:assert/strict';
    import { readFileSync } from 'node:fs';
    import { test } from 'node:test';
    import { greeting } from './greeting.ts';

    test('messages begin with Hello', () => {
      assert.equal(greeting('Ada'), 'Hello Ada,');
      assert.match(readFileSync('greeting.ts', 'utf8'), /“house style”/);
    });
`;

const duration = text`
    const units = { s: 1, m: 60, h: 60 };

    export function seconds(text: string): number {
      const [, amount, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
      return Number(amount) * units[unit as keyof typeof units];
    }
`;
const durationTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { seconds } from './duration.ts';

    test('an hour has 3600 seconds', () => {
      assert.equal(seconds('2h'), 7200);
      assert.equal(seconds('3m'), 180);
      assert.throws(() => seconds('3 weeks'), RangeError);
    });
`;

const colour = text`
    export function parse(hex: string): [number, number, number] {
      const red = Number.parseInt(hex.slice(1, 3), 10);
      const green = Number.parseInt(hex.slice(3, 5), 10);
      const blue = Number.parseInt(hex.slice(5, 7), 10);
      return [red, green, blue];
    }
`;
const format = text`
    export const format = (parts: [number, number, number]): string =>
      '#' + parts.map((part) => part.toString(16)).join('');
`;
const colourTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { parse } from './colour.ts';
    import { format } from './format.ts';

    test('a colour survives', () => {
      assert.deepEqual(parse('#0aff10'), [10, 255, 16]);
      assert.equal(format([10, 255, 16]), '#0aff10');
    });
`;

const money = text`
    export const total = (cents: number[]): number => cents.reduce((sum, each) => sum + each, 1);
`;
const moneyTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { total } from './money.ts';

    test('nothing costs nothing', () => {
      assert.equal(total([]), 0);
    });
`;
const fragment = 'fixed: a total began at one cent\n';

/** Writes the note that the project's instructions ask for, when they were shown. */
function* workWithNote(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files')];
  yield task.changes.map(({ path }) => read(path));
  yield [run(task.test)];
  const [path, content] = Object.entries(task.makes ?? {})[0] ?? ['', ''];
  if (conversation.saw(/every fix gets a file/)) yield [{ kind: 'write', path, content }];
  return yield* changeAndTest(task);
}

const route = text`
    export function route(path: string): string {
      if (path === '/health') return 'helthy';
      return 'not found';
    }
`;
const server = text`
    import { createServer } from 'node:http';
    import { route } from './route.ts';

    const port = Number(process.argv[2]);
    createServer((request, response) => response.end(route(request.url ?? ''))).listen(port, '127.0.0.1');
`;
const routeTest = text`
    import assert from 'node:assert/strict';
    import { readFileSync } from 'node:fs';
    import { test } from 'node:test';
    import { route } from './route.ts';

    test('the server was asked, and is healthy', () => {
      assert.equal(route('/health'), 'healthy');
      assert.equal(readFileSync('observed.txt', 'utf8'), 'healthy');
    });
`;

/** Starts the server, asks it in a later call, and ends it. */
function* workWithServer(_: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('route.ts'), read('server.ts')];
  const change: Move = { kind: 'edit', path: 'route.ts', edits: task.changes[0]?.edits ?? [] };
  yield [change];
  yield [{ kind: 'serve', command: 'node server.ts 4179' }];
  const ask =
    'curl -s --retry 20 --retry-delay 1 --retry-connrefused -o observed.txt http://127.0.0.1:4179/health; cat observed.txt';
  yield [run(ask)];
  yield [run('pkill -f "[s]erver.ts 4179"; true')];
  const [result] = yield [run(task.test)];
  return result?.includes('fail 0') ? 'The server answers, and the tests pass.' : 'The server does not answer.';
}

const many = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { pageCount } from './pages.ts';

    for (let items = 1; items <= 700; items += 1) {
      test('the page count of ' + items + ' items in pages of ' + items + ' is one', () => {
        assert.equal(pageCount(items, items), 1);
        if (items === 351) assert.equal(pageCount(11, 5), 3, 'THE CAUSE: a part of a page is a page');
      });
    }
    test('all of it is reported', () => {
      console.log(Array.from({ length: 400 }, (_, line) => 'checked line ' + line).join('\n'));
    });
`;

/** Looks for the failure again where the output did not show it. */
function* workOnLongOutput(conversation: Conversation, task: Task): Work {
  yield [run('git ls-files'), read('pages.ts')];
  yield [run(task.test)];
  if (!conversation.saw(/THE CAUSE/)) yield [run("node --test 2>&1 | grep -m 3 -A 2 'THE CAUSE'")];
  return yield* changeAndTest(task);
}

const modules = Object.fromEntries(
  Array.from({ length: 60 }, (_, index) => [
    `src/part${String(index).padStart(2, '0')}.ts`,
    'export const part' +
      index +
      ' = (value: number): number => value + ' +
      index +
      ';\n' +
      (index === 41 ? 'export const vatOf = (net: number): number => net * 0.91;\n' : ''),
  ]),
);
const vatTest = text`
    import assert from 'node:assert/strict';
    import { test } from 'node:test';
    import { vatOf } from './src/part41.ts';

    test('the tax is 19 per cent', () => {
      assert.equal(Math.round(vatOf(100)), 19);
    });
`;

function* workBySearch(_: Conversation, task: Task): Work {
  yield [run('grep -rn "vatOf" --include=*.ts .')];
  yield [read('src/part41.ts')];
  return yield* changeAndTest(task);
}

export const typescript: readonly Task[] = [
  {
    ...{ name: 'ts-pages', language: 'typescript', probes: 'nothing unusual', prompt: fix, test },
    files: { ...manifest, 'pages.ts': pages, 'pages.test.ts': pagesTest },
    changes: [{ path: 'pages.ts', edits: [roundedUp] }],
  },
  {
    ...{ name: 'ts-tabs', language: 'typescript', probes: 'blanks for tabs', prompt: fix, test },
    files: { ...manifest, 'stack.ts': stack, 'stack.test.ts': stackTest },
    changes: [
      {
        ...{ path: 'stack.ts', slip: 'blanksForTabs' },
        edits: [
          {
            old: '\t\tif (this.#items.length > 1) {\n\t\t\treturn this.#items.pop();\n\t\t}',
            new: '\t\tif (this.#items.length > 0) {\n\t\t\treturn this.#items.pop();\n\t\t}',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'ts-dedented', language: 'typescript', probes: 'indentation left out', prompt: fix, test },
    files: { ...manifest, 'ranges.ts': range, 'ranges.test.ts': rangeTest },
    changes: [
      {
        ...{ path: 'ranges.ts', slip: 'dedented' },
        edits: [
          {
            old: '      if (value === last[1]) {\n        last[1] = value;\n        continue;\n      }',
            new: '      if (value === last[1] + 1) {\n        last[1] = value;\n        continue;\n      }',
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'ts-quotes', language: 'typescript', probes: 'plain quotes for curly ones', prompt: fix, test },
    files: { ...manifest, 'greeting.ts': greeting, 'greeting.test.ts': greetingTest },
    changes: [
      {
        ...{ path: 'greeting.ts', slip: 'plainQuotes' },
        edits: [
          {
            old: "// “Dear” is for letters – never for messages.\nexport const greeting = (name: string): string =>\n  'Dear ' + name",
            new: "// “Dear” is for letters – never for messages.\nexport const greeting = (name: string): string =>\n  'Hello ' + name",
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'ts-crlf', language: 'typescript', probes: 'a file with CRLF line ends', prompt: fix, test },
    files: { ...manifest, 'duration.ts': crlf(duration), 'duration.test.ts': durationTest },
    changes: [
      {
        ...{ path: 'duration.ts', slip: 'lineEnds' },
        edits: [
          { old: 'm: 60, h: 60 };', new: 'm: 60, h: 3600 };' },
          {
            old: '?? [];\r\n  return Number(amount)',
            new: "?? [];\r\n  if (unit === undefined) throw new RangeError('not a duration: ' + text);\r\n  return Number(amount)",
          },
        ],
      },
    ],
  },
  {
    ...{ name: 'ts-two-files', language: 'typescript', probes: 'edits of two files', prompt: fix, test },
    files: { ...manifest, 'colour.ts': colour, 'format.ts': format, 'colour.test.ts': colourTest },
    changes: [
      {
        path: 'colour.ts',
        edits: [
          { old: 'hex.slice(1, 3), 10)', new: 'hex.slice(1, 3), 16)' },
          { old: 'hex.slice(3, 5), 10)', new: 'hex.slice(3, 5), 16)' },
          { old: 'hex.slice(5, 7), 10)', new: 'hex.slice(5, 7), 16)' },
        ],
      },
      { path: 'format.ts', edits: [{ old: 'toString(16))', new: "toString(16).padStart(2, '0'))" }] },
    ],
  },
  {
    ...{ name: 'ts-instructions', language: 'typescript', probes: 'a rule in AGENTS.md', prompt: fix, test },
    files: {
      ...manifest,
      'AGENTS.md':
        'Before you change code: every fix gets a file `changes/<topic>.md` with one line that says what was fixed.\n',
      ...{ 'money.ts': money, 'money.test.ts': moneyTest },
    },
    changes: [{ path: 'money.ts', edits: [{ old: 'sum + each, 1)', new: 'sum + each, 0)' }] }],
    makes: { 'changes/total.md': fragment },
    work: workWithNote,
  },
  {
    ...{ name: 'ts-nested-instructions', language: 'typescript', probes: 'a rule in the AGENTS.md of a directory' },
    ...{ prompt: fix, test },
    files: {
      ...manifest,
      'shop/AGENTS.md':
        'In this directory every fix gets a file `shop/changes/<topic>.md` with one line that says what was fixed.\n',
      ...{ 'shop/money.ts': money, 'shop/money.test.ts': moneyTest },
    },
    changes: [{ path: 'shop/money.ts', edits: [{ old: 'sum + each, 1)', new: 'sum + each, 0)' }] }],
    makes: { 'shop/changes/total.md': fragment },
    work: workWithNote,
  },
  {
    ...{ name: 'ts-server', language: 'typescript', probes: 'a server that outlives the call', test },
    prompt: 'The health check is wrong. Fix it, start the server, and save what /health answers in observed.txt.',
    files: { ...manifest, 'route.ts': route, 'server.ts': server, 'route.test.ts': routeTest },
    changes: [{ path: 'route.ts', edits: [{ old: "'helthy'", new: "'healthy'" }] }],
    makes: { 'observed.txt': 'healthy' },
    work: workWithServer,
  },
  {
    ...{ name: 'ts-long-output', language: 'typescript', probes: 'the cause amid long output', prompt: fix, test },
    files: { ...manifest, 'pages.ts': pages, 'pages.test.ts': many },
    changes: [{ path: 'pages.ts', edits: [roundedUp] }],
    work: workOnLongOutput,
  },
  {
    ...{ name: 'ts-search', language: 'typescript', probes: 'one of sixty files', prompt: fix, test },
    files: { ...manifest, ...modules, 'vat.test.ts': vatTest },
    changes: [{ path: 'src/part41.ts', edits: [{ old: 'net * 0.91', new: 'net * 0.19' }] }],
    work: workBySearch,
  },
  {
    ...{ name: 'ts-npm', language: 'typescript', probes: 'npm as the test runner', prompt: fix },
    test: 'npm test 2>&1',
    files: { ...manifest, 'pages.ts': pages, 'pages.test.ts': pagesTest },
    changes: [{ path: 'pages.ts', slip: 'codeFence', edits: [roundedUp] }],
    work: usualWork,
  },
];
