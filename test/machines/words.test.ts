import t from 'tap';
import { catalogue, type MachineWords, machineWords } from '../../machines/index.ts';
import { graphOf } from '../../src/inspect/graph.ts';
import { actionWords, clauseWords, guardWords } from '../../src/inspect/words.ts';

const words: Readonly<Record<string, MachineWords>> = machineWords;

t.test('every guard and action of a chart has words', async (t) => {
  t.same(Object.keys(words), Object.keys(catalogue));
  for (const [name, machine] of Object.entries(catalogue)) {
    const { nodes, edges } = graphOf(name, machine);
    const { guards = {}, actions = {} } = words[name] ?? {};
    const guardNames = edges.flatMap(({ guard }) => guard?.split(/ (?:and|or) /) ?? []);
    const actionNames = [
      ...edges.flatMap((edge) => edge.actions),
      ...nodes.flatMap(({ entry, exit }) => [...entry, ...exit]),
    ];
    const missing = [
      ...guardNames.map((guard) => guard.replace(/^not /, '')).filter((guard) => !Object.hasOwn(guards, guard)),
      ...actionNames.filter((action) => !Object.hasOwn(actions, action)),
    ];
    t.same([...new Set(missing)], [], `words of ${name} in machines/words`);
  }
});

t.test('words are short clauses without a full stop, and not the name again', async (t) => {
  for (const { guards, actions } of Object.values(words)) {
    for (const [name, text] of [...Object.entries(guards), ...Object.entries(actions)]) {
      t.match(text, /^[a-z][^.]{3,59}$/, name);
      t.not(text, name);
    }
  }
});

t.test('a guard is a condition, negated ones with unless, composed ones joined', async (t) => {
  const some = { guards: { a: 'it is idle', b: 'a process is left' }, actions: { run: 'start it' } };
  t.equal(guardWords(some, 'a'), 'if it is idle');
  t.equal(guardWords(some, 'not a'), 'unless it is idle');
  t.equal(guardWords(some, 'not a and b'), 'if not (it is idle) and a process is left');
  t.equal(clauseWords(some, 'a or b'), 'it is idle or a process is left');
  t.equal(guardWords(some, 'constructor'), 'if constructor', 'a name without words stays a name');
  t.equal(actionWords(some, 'run'), 'start it');
  t.equal(actionWords(some, 'toString'), 'toString');
});
