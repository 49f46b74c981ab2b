/** Which faces an agent server serves, where, and with which tools. Settings are the user's own, as those of a trusted workspace. */
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import t, { type Test } from 'tap';
import { sandboxStatus } from '../../src/agent/index.ts';
import { type AppServer, type AppServerOptions, startAppServer } from '../../src/appserver/index.ts';
import { extraToolNames, toolNames, userConfigFile } from '../../src/config/index.ts';
import { createLogger } from '../../src/log/index.ts';
import { callTool, say, script } from '../agent/scripted-provider.ts';
import { small } from '../mcp/helpers.ts';
import { unusedPort } from '../ports.ts';
import { eventually, makeWorkspace, readLock } from './harness.ts';
import { enginesOfServer } from './shared-engines.ts';

interface Faces {
  readonly server: AppServer;
  readonly path: string;
  readonly log: string[];
}

async function serve(t: Test, config: unknown, options: Partial<AppServerOptions> = {}): Promise<Faces> {
  const { path, home } = makeWorkspace(t);
  writeFileSync(userConfigFile(home), JSON.stringify(config));
  const log: string[] = [];
  const stream = { write: (line: string) => log.push(line) };
  const logger = createLogger({ name: 'test', level: 'debug', pretty: false, stream });
  const server = await startAppServer({
    workspacePath: path,
    env: { ORATORIO_HOME: home },
    logger,
    checkpointEngines: enginesOfServer(),
    ...options,
  });
  t.teardown(() => server.close());
  return { server, path, log };
}

async function occupied(t: Test): Promise<number> {
  const port = await unusedPort();
  const holder = createServer().listen(port, '127.0.0.1');
  await once(holder, 'listening');
  t.teardown(() => holder.close());
  return port;
}

const isOff = { DashBoard: { Enabled: false } };

t.test('regression: edge 5 gateway serves the chat API only when Api.Enabled is true; api always does', async (t) => {
  for (const [mode, Api, isServed] of [
    ['gateway', {}, false],
    ['gateway', { Enabled: false }, false],
    ['gateway', { Enabled: true }, true],
    ['api', { Enabled: false }, true],
    ['api', {}, true],
    ['appServer', {}, false],
  ] as const) {
    const { server } = await serve(t, { ...isOff, Api: { ...Api, Port: 0 } }, { mode });
    t.equal(server.endpoints.api !== undefined, isServed, `${mode} with ${JSON.stringify(Api)}`);
    if (isServed) t.equal((await fetch(`${server.endpoints.api}/v1/models`)).status, 200);
    await server.close();
  }
});

t.test('regression: edge 19 127.0.0.1 and localhost with one port are one address', async (t) => {
  for (const [apiHost, dashboardHost] of [
    ['127.0.0.1', 'localhost'],
    ['localhost', '127.0.0.1'],
    ['LOCALHOST', 'localhost'],
  ]) {
    const port = await unusedPort();
    const { server } = await serve(
      t,
      { Api: { Enabled: true, Host: apiHost, Port: port }, DashBoard: { Host: dashboardHost, Port: port } },
      { mode: 'gateway' },
    );
    const origins = Object.values(server.endpoints).map((url) => new URL(url).port);
    t.same(origins, [String(port), String(port)], `${apiHost} and ${dashboardHost}`);
    t.same(server.moved, []);
    t.equal((await fetch(`${server.endpoints.api}/v1/models`)).status, 200);
    t.equal((await fetch(server.endpoints.dashboard ?? '')).status, 200);
    await server.close();
  }
  const one = await unusedPort();
  let other = one;
  while (other === one) other = await unusedPort();
  const apart = await serve(
    t,
    { Api: { Enabled: true, Port: one }, DashBoard: { Host: 'localhost', Port: other } },
    { mode: 'gateway' },
  );
  t.not(new URL(apart.server.endpoints.api ?? '').port, new URL(apart.server.endpoints.dashboard ?? '').port);
});

t.test('regression: edge 19 a service on another port than configured reports both ports', async (t) => {
  const port = await occupied(t);
  const { server, path } = await serve(t, { DashBoard: { Port: port } });
  const real = Number(new URL(server.endpoints.dashboard ?? '').port);
  t.match(server.moved, [{ service: 'dashboard', wanted: { port }, bound: { port: real } }]);
  t.not(real, port);
  const published = readLock(path);
  t.match(published?.serviceNotes, { dashboard: `Port ${port} was not free; listening on ${real}.` });
  const free = await serve(t, { DashBoard: { Port: await unusedPort() } });
  t.same(free.server.moved, []);
  t.notOk('serviceNotes' in (readLock(free.path) ?? {}));
});

/** Names of the tools that the model is shown when the chat API asks it. */
async function offeredTo(t: Test, lists: { EnabledTools?: string[]; Api?: object }, mode: 'api' | 'appServer') {
  const provider = script(say('done'));
  const { server } = await serve(
    t,
    {
      ...isOff,
      ...lists,
      Api: { Enabled: true, Port: 0, ...lists.Api },
      McpServers: { small: { transport: 'stdio', command: process.execPath, args: [small], startupTimeoutSec: 120 } },
    },
    { mode, provider: async () => provider },
  );
  const url = server.endpoints.api;
  const mcpIsReady = async () => {
    const health = (await (await fetch(`${url}/v1/health`)).json()) as { mcp: { byState: { ready?: number } } };
    return health.mcp.byState.ready === 1 || undefined;
  };
  await eventually(mcpIsReady, 'the MCP server is ready');
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] });
  const headers = { 'content-type': 'application/json' };
  t.equal((await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })).status, 200);
  const health = (await (await fetch(`${url}/v1/health`)).json()) as { tools: { names: string[] } };
  const shown = provider.requests[0]?.tools?.map(({ name }) => name) ?? [];
  t.same(health.tools.names.toSorted(), shown.toSorted(), 'health names what the model is shown');
  await server.close();
  return shown;
}

t.test('the chat API offers the extra tools that EnabledTools names, and only then', async (t) => {
  const extra = ['UpdatePlan', 'Skill'];
  t.same(await offeredTo(t, { EnabledTools: ['ReadFile', ...extra] }, 'api'), ['ReadFile', ...extra]);
  const usual = await offeredTo(t, {}, 'api');
  t.notOk(
    usual.some((name) => extra.includes(name)),
    'control',
  );
});

t.test(
  'a call that Api.AutoApprove does not cover is refused with the rule or the sandbox as the reason',
  async (t) => {
    const { available } = await sandboxStatus('auto', process.env, 'deny');
    const Rules = [
      { Tool: 'Exec', Prefix: 'touch asked', Decision: 'ask' },
      { Tool: 'WriteFile', Path: 'asked/**', Decision: 'ask' },
    ];
    const outside = { command: 'touch outside', outside: true, reason: 'it needs the network' };
    for (const AutoApprove of [true, false]) {
      const { server, path } = await serve(
        t,
        { ...isOff, Provider: 'demo', Api: { Enabled: true, Port: 0, AutoApprove }, Permissions: { Rules } },
        { mode: 'api' },
      );
      const refusalOf = async (prompt: string) => {
        const answer = await fetch(`${server.endpoints.api}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ messages: [{ role: 'user', content: prompt }] }),
        });
        const [step] = ((await answer.json()) as { x_agent: { steps: { outcome: string; outputPreview: string }[] } })
          .x_agent.steps;
        return step?.outcome === 'declined' ? step.outputPreview : step?.outcome;
      };
      for (const [prompt, reason] of [
        ['run: touch asked', /a rule asks for it, and no automatic approval covers that: .*Exec touch asked/],
        ['call WriteFile {"path":"asked/a","content":"a"}', /a rule asks for it.*WriteFile/],
        ...(available
          ? ([[`call Exec ${JSON.stringify(outside)}`, /do not cover it; a rule of Permissions\.Rules/]] as const)
          : []),
      ] as const) {
        const refusal = await refusalOf(prompt);
        t.match(refusal, reason, `${prompt} with ${AutoApprove}`);
        t.notMatch(refusal, 'AutoApprove is false');
      }
      t.match(await refusalOf('run: touch free'), AutoApprove ? 'completed' : /Api\.AutoApprove is false/, 'control');
      t.same(
        readdirSync(path).filter((name) => /asked|outside|free/.test(name)),
        AutoApprove ? ['free'] : [],
      );
      await server.close();
    }
  },
);

t.test('regression: edge 20 EnabledTools restricts MCP tools, and both lists may name them', async (t) => {
  const all = await offeredTo(t, {}, 'api');
  const mcpTools = all.filter((name) => name.startsWith('mcp__small__'));
  t.ok(mcpTools.length > 1, mcpTools.join());
  t.equal(all.length - mcpTools.length, 9);
  const [named = '', other = ''] = mcpTools;
  t.same(await offeredTo(t, { EnabledTools: ['ReadFile'] }, 'api'), ['ReadFile'], 'a list without MCP tools has none');
  t.same(await offeredTo(t, { EnabledTools: ['ReadFile', named] }, 'api'), ['ReadFile', named]);
  t.same(await offeredTo(t, { Api: { EnabledTools: ['Exec', named.toUpperCase()] } }, 'api'), ['Exec', named]);
  t.same(
    await offeredTo(t, { EnabledTools: ['Exec', named], Api: { EnabledTools: ['Exec', other] } }, 'api'),
    ['Exec'],
    'what the one list leaves out the other cannot bring back',
  );
});

t.test('regression: edge 20 a tool that no list names is not run when the model calls it', async (t) => {
  const provider = script(callTool('mcp__small__add', { a: 1, b: 2 }), say('done'));
  const { server } = await serve(
    t,
    {
      ...isOff,
      EnabledTools: ['ReadFile'],
      McpServers: { small: { transport: 'stdio', command: process.execPath, args: [small], startupTimeoutSec: 120 } },
    },
    { provider: async () => provider },
  );
  const { Session } = await import('./session.ts');
  const session = await Session.open(t, server.webSocketUrl, { onApproval: () => ({ decision: 'accept' }) });
  const ready = async () => (await session.call('mcp/status/list', {})).data[0]?.startupState === 'ready' || undefined;
  await eventually(ready, 'the MCP server is ready');
  const { thread } = await session.call('thread/start', {});
  await session.say(thread.id, 'add');
  const { turn } = await session.until('turn/completed');
  const result = turn.items.find(({ type }: { type: string }) => type === 'toolResult');
  t.match(result, { outcome: 'failed', text: /there is no tool/i });
});

t.test('regression: edge 20 an impossible tool name fails the start', async (t) => {
  for (const name of ['Sudo', 'mcp__', 'mcp__server', 'mcp__a b__c d']) {
    for (const config of [{ EnabledTools: [name] }, { Api: { EnabledTools: [name] } }]) {
      await t.rejects(serve(t, config), { name: 'StartupError', message: /EnabledTools.*must be one of ReadFile, / });
    }
  }
});

t.test('regression: edge 6 a service offers the tools that both lists permit', async (t) => {
  const toolsOf = async (config: object, mode: 'api' | 'gateway') => {
    const { server } = await serve(t, { ...isOff, ...config }, { mode });
    const { offered, warnings } = await server.describe();
    await server.close();
    return { offered: offered.map(({ face, names, isAll }) => [face, names.length, isAll]), warnings };
  };
  const Api = { Enabled: true, Port: 0 };
  t.same(await toolsOf({ Api }, 'api'), { offered: [['api', 9, true]], warnings: [] });
  const every = [...toolNames, ...extraToolNames];
  for (const lists of [{ EnabledTools: every, Api }, { Api: { ...Api, EnabledTools: every } }]) {
    t.same((await toolsOf(lists, 'api')).offered, [['api', 15, true]], 'extra tools are counted where they are named');
  }
  const withoutApi = async (EnabledTools: readonly string[]) =>
    (await toolsOf({ Api: { Enabled: false }, EnabledTools }, 'gateway')).offered;
  t.same(await withoutApi([]), [['server', 15, true]]);
  t.same(await withoutApi(every), [['server', 15, true]]);
  t.same(await withoutApi(['ReadFile', 'Skill']), [['server', 2, false]], 'a list also applies without the chat API');
  t.same(await toolsOf({ Api: { ...Api, EnabledTools: ['ReadFile', 'exec'] } }, 'api'), {
    offered: [['api', 2, false]],
    warnings: [],
  });
  t.same(await toolsOf({ Api: { ...Api, EnabledTools: ['ReadFile'] } }, 'gateway'), {
    offered: [
      ['api', 1, false],
      ['server', 15, true],
    ],
    warnings: [],
  });
  t.match(await toolsOf({ EnabledTools: ['Exec'], Api: { ...Api, EnabledTools: ['ReadFile'] } }, 'api'), {
    offered: [['api', 0, false]],
    warnings: [/^The chat API offers no tools: EnabledTools and Api\.EnabledTools/],
  });
  t.match(await toolsOf({ Api: { ...Api, EnabledTools: ['mcp__nothing__x'] } }, 'api'), {
    warnings: [/Api\.EnabledTools names mcp__nothing__x, but no such MCP server is configured/, /offers no tools/],
  });
});
