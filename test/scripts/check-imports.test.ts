import t from 'tap';
import { cyclesOf, importsOf, problemOf } from '../../scripts/check-imports.ts';

t.test('every form of import is found', async (t) => {
  const source = `
import one from './one.ts';
import type { Two } from './two.ts';
import { type Three } from './three.ts';
import './four.ts';
export * from './five.ts';
export { six } from './six.ts';
const text = "import x from './no.ts'"; // import y from './no.ts'
/* import z from './no.ts' */ const template = \`import('./no.ts')\`;
export const seven = () => import('./seven.ts');
`;
  t.strictSame(
    importsOf('a.ts', source).map(({ specifier, isType, line }) => `${line} ${specifier}${isType ? ' type' : ''}`),
    ['2 ./one.ts', '3 ./two.ts type', '4 ./three.ts type', '5 ./four.ts', '6 ./five.ts', '7 ./six.ts', '10 ./seven.ts'],
  );
});

t.test('rooms import lower rooms only, through their index.ts', async (t) => {
  const problem = (file: string, specifier: string, isType = false) => problemOf(file, { specifier, isType });
  t.equal(problem('src/cli/main.ts', '../hub/index.ts'), undefined);
  t.equal(problem('src/cli/commands/up.ts', '../../client/index.ts'), undefined);
  t.equal(problem('src/cli/commands/up.ts', '../render.ts'), undefined, 'inside a room');
  t.equal(problem('src/hub/hub.ts', 'valibot'), undefined, 'a package');
  t.equal(problem('src/hub/hub.ts', '../../machines/index.ts'), undefined);
  t.equal(problem('src/protocol/version.ts', '../../package.json'), undefined);
  t.match(problem('src/hub/hub.ts', '../cli/output.ts'), 'hub must not import cli');
  t.match(problem('src/hub/hub.ts', '../appserver/index.ts'), 'hub must not import appserver');
  t.match(problem('src/http/core.ts', '../events/index.ts'), 'http must not import events');
  t.match(problem('src/cli/main.ts', '../hub/main.ts'), 'entered through src/hub/index.ts');
  t.match(problem('src/http/core.ts', '../protocol/defaults.ts'), 'entered through src/protocol/index.ts');
  t.match(problem('machines/hub.ts', '../src/protocol/index.ts'), 'machines must not import protocol');
  t.equal(problem('machines/hub.ts', '../src/lib/browser.ts'), undefined, 'pure functions');
  t.match(problem('machines/hub.ts', '../src/lib/index.ts'), 'entered through src/lib/browser.ts');
  t.match(problem('src/ui/app/stream.ts', '../../lib/index.ts'), 'entered through src/lib/browser.ts');
  t.match(problem('src/protocol/hub.ts', '../../machines/index.ts'), 'only types of machines');
  t.equal(problem('src/protocol/hub.ts', '../../machines/index.ts', true), undefined);
  t.match(problem('src/attic/x.ts', '../log/index.ts'), 'not in the table');
  t.match(problem('src/hub/hub.ts', '../../test/helpers.ts'), 'is in no room');
});

t.test('parts of an ordered room import lower parts only, through their index.ts', async (t) => {
  const problem = (file: string, specifier: string) => problemOf(file, { specifier, isType: true });
  t.equal(problem('src/review/runs/publish.ts', '../store/index.ts'), undefined);
  t.equal(problem('src/review/runs/publish.ts', '../errors.ts'), undefined, 'a part of one file');
  t.equal(problem('src/review/store/sqlite/open.ts', '../limits.ts'), undefined, 'inside a part');
  t.equal(problem('src/review/index.ts', './backend/index.ts'), undefined);
  t.match(problem('src/review/runs/publish.ts', '../api/index.ts'), 'src/review/runs must not import src/review/api');
  t.match(problem('src/review/jobs/lane.ts', '../store/types.ts'), 'entered through src/review/store/index.ts');
  t.match(problem('src/review/attic/x.ts', '../store/index.ts'), 'src/review/attic is not in the order');
});

t.test('a file that imports itself through others is a cycle, and a shared import is not', async (t) => {
  const imports = (...rows: [string, string[]][]) => cyclesOf(new Map(rows));
  t.same(imports(['a.ts', ['b.ts', 'c.ts']], ['b.ts', ['c.ts']], ['c.ts', []]), []);
  t.same(imports(['a.ts', ['b.ts']], ['b.ts', ['c.ts']], ['c.ts', ['b.ts']]), [['b.ts', 'c.ts', 'b.ts']]);
});
