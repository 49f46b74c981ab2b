import t from 'tap';
import { createUpdatePlan } from '../../../src/agent/tools/update-plan.ts';
import { maxPlanSteps } from '../../../src/protocol/index.ts';
import { answers, call as calls, say, service, talk } from '../helpers.ts';
import { call, problemOf } from './run-tool.ts';

const tool = createUpdatePlan();
const step = (name: string, status = 'pending') => ({ step: name, status });

t.test('a plan is counted for the model and handed on for clients', async (t) => {
  const result = await call(tool, {
    plan: [step('read', 'completed'), step('write', 'in_progress'), { step: ' test ' }],
  });
  t.match(result, { isError: false, text: /1 of 3 steps completed/ });
  t.same(result.plan, [step('read', 'completed'), step('write', 'in_progress'), step('test')]);
});

t.test('the names that models use otherwise, and a list as text, are understood', async (t) => {
  t.match(await call(tool, { todos: JSON.stringify([step('read')]) }), { plan: [step('read')] });
});

t.test(
  'an empty plan, an unknown state, an empty step and too many steps are refused with the valid form',
  async (t) => {
    for (const [plan, problem] of [
      [[], /plan must be/],
      [[step('x', 'done')], /pending, in_progress, completed/],
      [[step(' ')], /must be/],
      [[step('x'.repeat(501))], /at most 500 characters/],
      [Array.from({ length: maxPlanSteps + 1 }, () => step('x')), /at most 50 steps/],
      ['x', /plan must be/],
    ] as const) {
      t.match(problemOf(tool, { plan }), problem);
    }
  },
);

t.test('each call adds an item with the plan beside its result, and asks for nothing', async (t) => {
  const first = [step('read', 'in_progress'), step('write')];
  const second = [step('read', 'completed'), step('write', 'completed')];
  const provider = answers(
    [calls('1', 'UpdatePlan', { plan: first })],
    [calls('2', 'UpdatePlan', { plan: second })],
    [say('done')],
  );
  const { runtime } = service(provider, { tools: () => [tool] });
  const { turn } = await talk(runtime, runtime.threads.start({ config: { readOnly: true } }).thread.id, 'x');
  t.match(
    turn.items.filter(({ type }) => type === 'plan'),
    [
      { callId: '1', steps: first },
      { callId: '2', steps: second },
    ],
  );
  const again = answers([say('ok')]);
  const { runtime: others } = service(again, { tools: () => [tool] });
  await talk(others, others.threads.start({}).thread.id, 'x');
  t.match(again.requests[0]?.tools, [{ name: 'UpdatePlan' }]);
});
