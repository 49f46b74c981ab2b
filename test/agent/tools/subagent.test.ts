import t from 'tap';
import { createSpawnSubagent } from '../../../src/agent/tools/subagent.ts';
import { call, problemOf } from './run-tool.ts';

const tool = createSpawnSubagent();

t.test('hands the task to the runtime and returns its result', async (t) => {
  const asked: unknown[] = [];
  const spawnSubagent = async (order: unknown) => {
    asked.push(order);
    return { text: 'done', isError: false };
  };
  t.strictSame(await call(tool, { task: ' count files ', label: 'counter', type: ' explore ' }, { spawnSubagent }), {
    text: 'done',
    isError: false,
  });
  await call(tool, { agentPrompt: 'count files', label: ' ', worktree: 'true' }, { spawnSubagent });
  t.strictSame(asked, [
    { task: 'count files', label: 'counter', type: 'explore', worktree: false },
    { task: 'count files', label: undefined, type: undefined, worktree: true },
  ]);
});

t.test('the model receives the refusal of the runtime', async (t) => {
  const refusal = { text: 'Error: sub-agents may not start sub-agents.', isError: true };
  t.strictSame(await call(tool, { task: 'x' }, { spawnSubagent: async () => refusal }), refusal);
});

t.test('needs a task; may change things; needs no approval', async (t) => {
  t.match(problemOf(tool, {}), /task is missing/);
  t.match(problemOf(tool, { task: '  ' }), /task must be a text that says what to do/);
  t.equal(tool.isReadOnly, false);
  t.equal(await tool.approvalFor({ task: 'x' }, { workspacePath: '/ws' }), undefined);
});

t.test('another agent is offered where there is one, and needs approval', async (t) => {
  t.notMatch(JSON.stringify(tool.inputSchema), /"agent"/);
  const other = createSpawnSubagent(['codex']);
  t.match(problemOf(other, { task: 'x', agent: 'rm' }), /agent must be one of codex/);
  t.match(await other.approvalFor({ task: 'x', agent: 'codex' }, { workspacePath: '/ws' }), {
    target: 'codex',
    scopeKey: 'subagent:codex',
  });
  t.equal(await other.approvalFor({ task: 'x' }, { workspacePath: '/ws' }), undefined);
});
