/** Every message of both sides of an editor's connection against the official schema. `harness.ts` checks each of ours. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { methodsOf, SchemaCheck } from '../acp-schema.ts';
import { calls, hangs, says, scripted } from '../agui/model.ts';
import { eventually } from '../http/support.ts';
import { choose, inSession, surroundings } from './harness.ts';

/** Requests for services of an editor that this agent does not use: it has its own. */
const notUsed: ReadonlySet<string> = new Set([
  'fs/read_text_file',
  'fs/write_text_file',
  'terminal/create',
  'terminal/output',
  'terminal/release',
  'terminal/wait_for_exit',
  'terminal/kill',
  'elicitation/create',
  'elicitation/complete',
]);

t.test('every request of an editor is answered as the official schema says', async (t) => {
  const provider = scripted(
    calls({ callId: 'p1', name: 'UpdatePlan', args: { plan: [{ step: 'look', status: 'in_progress' }] } }),
    calls({ callId: 'w1', name: 'WriteFile', args: { path: 'a.txt', content: 'one\n' } }),
    calls({ callId: 'x1', name: 'Exec', args: { command: 'echo hi' } }),
    (request, emit, signal) => {
      emit({ type: 'thinking', text: 'hm' });
      return says('Done.')(request, emit, signal);
    },
    hangs(),
  );
  const where = await surroundings(t, provider);
  const editor = await inSession(t, where, { permit: () => choose('accept') });
  const { agent, sessionId, seen } = editor;
  const { workspace: cwd } = where;
  await agent.request('authenticate', { methodId: 'oratorio-login' });
  await editor.prompt('work');
  await agent.request('session/set_mode', { sessionId, modeId: 'autoApprove' });
  await agent.request('session/set_config_option', { sessionId, configId: 'effort', value: 'low' });
  const pending = editor.prompt('wait');
  await eventually(() => editor.said().endsWith('let me see'), 'it has begun to answer');
  await agent.notify('session/cancel', { sessionId });
  await pending;
  await agent.request('session/list', { cwd });
  await agent.request('session/close', { sessionId });
  await agent.request('session/resume', { sessionId, cwd, mcpServers: [] });
  await agent.request('session/load', { sessionId, cwd, mcpServers: [] });
  await agent.request('session/delete', { sessionId });
  await agent.request('logout', {});
  const wanted = methodsOf('agent');
  const missing = wanted.filter((method) => {
    const isNotice = method === 'session/cancel';
    return !seen.has(`agent ${method} ${isNotice ? 'Notification' : 'Response'}`);
  });
  t.strictSame(missing, []);
  const asked = methodsOf('client').filter((method) => !notUsed.has(method));
  t.strictSame(asked.sort(), ['session/request_permission', 'session/update']);
  for (const each of ['client session/request_permission Request', 'client session/update Notification']) {
    t.ok(seen.has(each), each);
  }
});

t.test('the document has a row for each request that is served, and no other', (t) => {
  const text = readFileSync(new URL('../../docs/acp.md', import.meta.url), 'utf8');
  const [, section = ''] = text.split('## Requests\n');
  const [table = ''] = section.split('\n## ');
  const rows = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, method = '']) => method),
  );
  const served = methodsOf('agent').filter((method) => method !== 'initialize');
  t.strictSame(rows.toSorted(), [...served, '$/cancel_request', 'session/fork'].toSorted());
  t.end();
});

t.test('the check finds messages that the schema refuses', (t) => {
  const check = new SchemaCheck();
  const to = (side: 'agent' | 'client', message: object) => check.write(side, `${JSON.stringify(message)}\n`);
  to('agent', { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } });
  to('client', { jsonrpc: '2.0', id: 1, result: { protocolVersion: 'one' } });
  to('client', {
    jsonrpc: '2.0',
    method: 'session/update',
    params: { sessionId: 's', update: { sessionUpdate: 'plan' } },
  });
  to('client', { jsonrpc: '2.0', id: 2, method: 'session/dance', params: {} });
  to('client', { jsonrpc: '2.0', id: 3, error: { code: 'x' } });
  check.write('client', 'noise\n');
  t.match(check.problems.client, [
    /agent initialize Response/,
    /client session\/update Notification/,
    /session\/dance Request: there is no such method/,
    /not an error/,
    /not a message/,
  ]);
  t.strictSame(check.problems.agent, []);
  t.end();
});
