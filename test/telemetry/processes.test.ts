import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import { dashboardToken } from '../../src/supervise/index.ts';
import { metricTables, workspaceId } from '../../src/telemetry/index.ts';
import { Session } from '../appserver/session.ts';
import { eventually, makeWorkspace, quick, startTestHub, temporaryDirectory } from '../hub/harness.ts';
import { collector } from './collector.ts';
import { lint, type ParsedFamily, parse, value } from './prometheus.ts';

/** Requests metrics with the headers of Prometheus. */
async function scrape(url: string, token: string): Promise<Map<string, ParsedFamily>> {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/plain;version=0.0.4', 'accept-encoding': 'gzip' },
  });
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  if (!response.headers.get('content-type')?.startsWith('text/plain')) throw new Error('not text');
  return parse(await response.text());
}

const namesOf = (...tables: (keyof typeof metricTables)[]) =>
  new Set(tables.flatMap((table) => Object.values(metricTables[table]).map(({ name }) => name)));

t.test('scrapes and exports of Hub and agent server have the restart after a kill', async (t) => {
  const { url, spans, until } = await collector(t);
  const home = temporaryDirectory(t, 'oratorio-home-');
  writeFileSync(join(home, 'config.json'), JSON.stringify({ Telemetry: { Enabled: true, Endpoint: url } }));
  const workspace = makeWorkspace(t, quick);
  const hub = await startTestHub(t, { home });
  const record = await hub.ensure(workspace);
  const hubMetrics = `${hub.lock.apiBaseUrl}/v1/metrics`;
  const agentMetrics = new URL('/metrics', record.endpoints['dashboard']).href;
  t.equal((await fetch(hubMetrics)).status, 401);
  t.equal((await fetch(agentMetrics)).status, 401);

  const session = await Session.open(t, record.endpoints['appServerWebSocket'] ?? '', {});
  const { thread } = await session.call('thread/start', {});
  await session.say(thread.id, 'say hello');
  await session.until('turn/completed');
  const turn = await until(({ name }) => name === 'turn');
  t.match(turn, {
    attributes: { 'gen_ai.conversation.id': thread.id },
    resource: { 'service.name': 'oratorio-agent' },
  });

  // The collector has the spans before the agent server has its answer.
  const agent = await eventually(async () => {
    const families = await scrape(agentMetrics, dashboardToken(home, record.canonicalWorkspacePath));
    return (value(families, 'oratorio_telemetry_spans_total', { result: 'exported' }) ?? 0) >= 2 ? families : undefined;
  }, 'the export is counted');
  t.strictSame(lint(agent), []);
  t.equal(value(agent, 'oratorio_agent_turns_total', { status: 'completed' }), 1);
  t.ok((value(agent, 'oratorio_agent_web_sockets') ?? 0) >= 1);
  t.ok((value(agent, 'oratorio_telemetry_spans_total', { result: 'exported' }) ?? 0) >= 2);
  const absent = [...namesOf('agent', 'process', 'export')].filter((name) => !agent.has(name));
  t.strictSame(absent, [], 'everything of the table is there');

  // The session would decline the question of its own thread.
  const client = await AppServerClient.connect(record.endpoints['appServerWebSocket'] ?? '', {
    clientInfo: { name: 'test', version: '1' },
  });
  t.teardown(() => client.close());
  const asking = (await client.request('thread/start', {})) as { thread: { id: string } };
  await client.request('turn/start', {
    threadId: asking.thread.id,
    input: [{ type: 'text', text: 'run: touch done' }],
  });
  await eventually(async () => (await session.call('approval/list', {})).data[0], 'a turn waits for an approval');
  process.kill(Number(record.pid), 'SIGKILL');
  await eventually(async () => {
    const { pid, state } = await hub.record(workspace);
    return (state === 'running' && pid !== record.pid) || undefined;
  }, 'it runs again');
  const resumed = await eventually(async () => {
    const next = new URL('/metrics', (await hub.record(workspace)).endpoints['dashboard']).href;
    const numbers = await scrape(next, dashboardToken(home, record.canonicalWorkspacePath));
    return value(numbers, 'oratorio_agent_turns_resumed_total', { reason: 'crash' }) === 1 ? numbers : undefined;
  }, 'the turn that continues is counted');
  t.equal(value(resumed, 'oratorio_agent_turns_resumed_total', { reason: 'restart' }), 0);
  const families = await scrape(hubMetrics, hub.lock.token);
  t.strictSame(lint(families), []);
  t.strictSame(new Set(families.keys()), namesOf('hub', 'process', 'export'), 'the table names every metric of a Hub');
  t.equal(value(families, 'oratorio_hub_workspaces', { state: 'running' }), 1);
  t.equal(value(families, 'oratorio_hub_restarts_total'), 1);
  t.equal(value(families, 'oratorio_hub_start_duration_seconds_count', { ownership: 'managed' }), 2);
  t.equal(value(families, 'oratorio_hub_transitions_total', { machine: 'agent-server', state: 'running' }), 2);
  t.equal(value(families, 'oratorio_hub_events_total', { kind: 'appserver.running' }), 2);
  t.notOk(JSON.stringify([...families.values()]).includes(workspace), 'no path');

  const starting = await until(({ name, links }) => name === 'agent-server starting' && links.length > 0);
  const running = await until(
    ({ name, attributes }) => name === 'agent-server running' && attributes['error.type'] === 'crashed',
  );
  t.match(running, { isError: true, attributes: { 'oratorio.signal': 'SIGKILL' } });
  t.equal(starting.links[0]?.traceId, running.traceId, 'the second start links to the first');
  t.equal(running.attributes['oratorio.workspace'], workspaceId(workspace));
  t.equal(turn.resource['oratorio.workspace'], workspaceId(workspace), 'both call the workspace the same');
  await hub.shutdown();
  t.ok(
    spans.some(({ name }) => name === 'agent-server stopping'),
    'the end is sent before the end',
  );
});
