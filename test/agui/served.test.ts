/** The endpoint as an agent server serves it, with the real tools. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { surroundings } from '../acp/harness.ts';
import { agentOf, last, run, say } from './harness.ts';
import { calls, says, scripted } from './model.ts';

const config = { AgUi: { Enabled: true, Port: 0, Path: '/frontend', ApiKey: 'sesame' } };
const headers = { authorization: 'Bearer sesame' };

const accepted = (agent: ReturnType<typeof agentOf>) => ({
  resume: agent.pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { decision: 'accept' },
  })),
});

t.test('an approved write creates a file, which is read again', async (t) => {
  const provider = scripted(
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'hello\n' } }),
    calls({ callId: 'r1', name: 'ReadFile', args: { path: 'a.txt' } }),
    says('It says hello.'),
  );
  const { server, workspace } = await surroundings(t, provider, config);
  const agent = agentOf(server.endpoints.agui ?? '', 'x', headers);
  say(agent, 'write it');
  await run(agent);
  t.equal(existsSync(join(workspace, 'a.txt')), false, 'not before it is allowed');
  const ran = await run(agent, accepted(agent));
  t.match(last(ran), { outcome: { type: 'success' } });
  t.equal(readFileSync(join(workspace, 'a.txt'), 'utf8'), 'hello\n');
  t.match(
    agent.messages.filter(({ role }) => role === 'tool'),
    [{ toolCallId: 'w1' }, { toolCallId: 'r1', content: /hello/ }],
  );
});

t.test('approvals of a sub-agent are requested in the run of its parent', async (t) => {
  const provider = scripted(
    calls({ callId: 's1', name: 'SpawnSubagent', args: { task: 'write a file' } }),
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'b.txt', content: 'x' } }),
    says('I wrote it.'),
    says('My helper wrote it.'),
  );
  const { server, workspace } = await surroundings(t, provider, config);
  const url = server.endpoints.agui ?? '';
  const agent = agentOf(url, 'x', headers);
  say(agent, 'have it written');
  const first = await run(agent);
  t.match(last(first), { outcome: { type: 'interrupt', interrupts: [{ message: /b\.txt/ }] } });
  t.notOk(agent.pendingInterrupts[0]?.toolCallId, 'its call is none of the frontend');
  const listed = (await (await fetch(`${url}/approvals`, { headers })).json()) as { data: unknown[] };
  t.equal(listed.data.length, 1);
  const second = await run(agent, accepted(agent));
  t.match(last(second), { outcome: { type: 'success' } });
  t.equal(existsSync(join(workspace, 'b.txt')), true);
  t.equal(agent.messages.at(-1)?.content, 'My helper wrote it.');
});
