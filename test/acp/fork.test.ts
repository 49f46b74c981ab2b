/** `session/fork`, by the client of the SDK that knows drafts of the protocol. */
import { Readable, Writable } from 'node:stream';
import { client, ndJsonStream } from '@agentclientprotocol/sdk/unstable';
import t from 'tap';
import { says, scripted } from '../agui/model.ts';
import { inSession, startAgent, surroundings } from './harness.ts';

t.test('a fork is a session of its own that knows the conversation', async (t) => {
  const provider = scripted(says('one'), says('two'), says('three'));
  const where = await surroundings(t, provider);
  const first = await inSession(t, where);
  await first.prompt('remember this');
  const { input, output } = startAgent(t, where);
  const said: string[] = [];
  const { agent } = client({ name: 'draft editor' })
    .onNotification('session/update', ({ params }) => void said.push(JSON.stringify(params)))
    .connect(ndJsonStream(Writable.toWeb(input), Readable.toWeb(output) as ReadableStream<Uint8Array>));
  const { agentCapabilities } = await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  t.strictSame(agentCapabilities?.sessionCapabilities?.fork, {});
  const fork = await agent.request('session/fork', { sessionId: first.sessionId, cwd: where.workspace });
  t.not(fork.sessionId, first.sessionId);
  t.match(fork, { modes: { currentModeId: 'default' }, configOptions: [{ id: 'mode' }] });
  const prompt = [{ type: 'text' as const, text: 'and then?' }];
  t.match(await agent.request('session/prompt', { sessionId: fork.sessionId, prompt }), { stopReason: 'end_turn' });
  t.match(JSON.stringify(provider.requests[1]?.messages), /remember this.*and then/);
  await first.prompt('go on');
  t.notMatch(JSON.stringify(provider.requests[2]?.messages), /and then/, 'the original does not change');
  for (const params of [
    { sessionId: 'none', cwd: where.workspace },
    { sessionId: first.sessionId, cwd: '/' },
    { sessionId: 7, cwd: where.workspace },
    { sessionId: first.sessionId, cwd: where.workspace, mcpServers: [{ name: 'x' }] },
  ]) {
    await t.rejects(agent.request('session/fork', params as never), JSON.stringify(params));
  }
});
