import t from 'tap';
import { choicesOf } from '../../src/cli/race/options.ts';

const choices = (options: Readonly<Record<string, string>>, agent: readonly string[] = []) =>
  choicesOf({ options, lists: { agent } }).map(({ agent, model, effort }) => `${agent}/${model}/${effort}`);

t.test('models, efforts and agents of a race are used in turn', (t) => {
  t.same(choices({ model: 'a, b', effort: 'low,high,low' }), ['/a/low', '/b/high', '/a/low']);
  t.same(choices({ attempts: '5', model: 'a,b' }), ['/a/', '/b/', '/a/', '/b/', '/a/']);
  t.same(choices({}, ['oratorio', 'codex']), ['oratorio//', 'codex//'], 'one attempt for each agent');
  t.same(choices({}, ['oratorio,codex']), ['oratorio//', 'codex//'], 'separated by commas');
  t.same(choices({}, ['codex', 'codex']), ['codex//', 'codex//'], 'an agent that is named twice');
  t.same(choices({ model: 'a' }), ['/a/', '/a/', '/a/'], 'control: three attempts');
  t.end();
});

t.test('a race with unknown efforts, too many attempts or agents without an attempt is refused', (t) => {
  for (const [options, agent, message] of [
    [{ effort: 'low,huge' }, [], /--effort must name .*, not huge/],
    [{ attempts: '9' }, [], /from 1 to 8/],
    [{ attempts: '1' }, ['a', 'b'], /names 2 agents for --attempts 1/],
    [{}, ['a,'], /before and after each comma/],
  ] as const)
    t.throws(() => choices(options, agent), { message });
  t.end();
});
