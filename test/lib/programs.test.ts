import { chmodSync } from 'node:fs';
import { delimiter, relative } from 'node:path';
import t from 'tap';
import { findProgram } from '../../src/lib/index.ts';

t.test('a program is found', async (t) => {
  const directory = t.testdir({ first: { tool: '' }, second: { tool: '', 'not-for-us': '' }, third: { tool: {} } });
  const at = (name: string) => `${directory}/${name}`;
  t.before(() => chmodSync(at('second/tool'), 0o755));

  t.test('the first executable file of the search path is the program, and no directory is', async (t) => {
    const path = ['third', 'first', 'second'].map(at).join(delimiter);
    t.equal(findProgram('tool', path, []), at('second/tool'));
    t.equal(findProgram('not-for-us', path, []), undefined);
  });

  t.test('a relative entry of the search path is passed over', async (t) => {
    t.equal(findProgram('tool', relative(process.cwd(), at('second')), []), undefined);
  });

  t.test('places beyond the search path are searched after it', async (t) => {
    t.equal(findProgram('tool', at('first'), [at('second')]), at('second/tool'));
    t.ok(findProgram('sh'), 'without a search path');
  });

  t.test('a path is the program itself, if this user may run it', async (t) => {
    t.equal(findProgram(at('second/tool'), '', []), at('second/tool'));
    t.equal(findProgram(at('first/tool'), '', []), undefined);
  });
});
