/** The other protocols of the built product: AG-UI and ACP clients, and MCP servers of the agent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import OpenAI from 'openai';
import t, { type Test } from 'tap';
import { AppServerClient } from '../../src/client/index.ts';
import type { McpServerStatus } from '../../src/protocol/index.ts';
import { choose, type Editor, editorOn, introduce, type Permit } from '../acp/harness.ts';
import { agentOf, last, say as prompt, type Ran, run } from '../agui/harness.ts';
import { eventually, isAlive } from '../hub/harness.ts';
import { everything, filesystem } from '../mcp/helpers.ts';
import { answerOf, command, hubLog, makePlace, processesUnder, say, startHub } from './harness.ts';

const place = makePlace(t);
const hub = await startHub(place);

/** Commands for the demo model. Those that change something need approval. */
const task = ['write hello.sh: echo "made of $((6 * 7))"', 'read hello.sh', 'run: sh hello.sh'].join('\n');
const script = 'echo "made of $((6 * 7))"\n';

t.test('AG-UI: the official client gets a file written, read and run, and approves each change', async (t) => {
  const key = 'a-key-of-the-frontend';
  const workspace = place.workspace('page', { AgUi: { Enabled: true, ApiKey: key } });
  const { serviceStatus } = await hub.client.ensure({ workspacePath: workspace });
  const url = serviceStatus['agui']?.url ?? '';
  t.match(serviceStatus['agui'], { state: 'running', reason: null });

  const agent = agentOf(url, 'a thread of the page', { authorization: `Bearer ${key}` });
  prompt(agent, task);
  const asked = await run(agent);
  t.match(last(asked), {
    outcome: { type: 'interrupt', interrupts: [{ metadata: { oratorio: { approvalType: 'file' } } }] },
  });
  t.notOk(existsSync(join(workspace, 'hello.sh')), 'nothing is there before it is allowed');
  const written = await run(agent, allowed(agent));
  t.match(last(written), {
    outcome: { type: 'interrupt', interrupts: [{ metadata: { oratorio: { approvalType: 'shell' } } }] },
  });
  t.equal(readFileSync(join(workspace, 'hello.sh'), 'utf8'), script);
  const ended = await run(agent, allowed(agent));
  t.match(last(ended), { outcome: { type: 'success' } });
  const results = agent.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
  t.match(results, [/hello\.sh/, /made of \$\(\(6/, /made of 42/]);
  t.match(callsOf(asked, written, ended), ['WriteFile', 'ReadFile', 'Exec']);
  const pieces = asked.events.filter(({ type }) => type === 'TOOL_CALL_ARGS').length;
  t.ok(pieces > 1, 'arguments come as the model writes them');
  t.match(agent.messages.at(-1), { role: 'assistant', content: /Demo model/ });
  await hub.client.stop(workspace);
});

const allowed = ({ pendingInterrupts }: ReturnType<typeof agentOf>) => ({
  resume: pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { decision: 'accept' },
  })),
});

const callsOf = (...runs: readonly Ran[]): string[] =>
  runs.flatMap(({ events }) => events).flatMap((event) => ('toolCallName' in event ? [event.toolCallName] : []));

/** `oratorio acp` as an editor starts it. */
async function editor(t: Test, permit: Permit) {
  const child = spawn(process.execPath, [command, 'acp', '--no-start'], { cwd: place.root, env: place.env });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const made = editorOn(
    Writable.toWeb(child.stdin),
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    permit,
  );
  await introduce(made);
  return {
    ...made,
    stderr: () => stderr,
    /** The editor closes its end; gives the exit code. */
    async leave(): Promise<unknown> {
      child.stdin.end();
      return (await ended)[0];
    },
  };
}

const finished = (of: Editor['of']) =>
  of('tool_call_update').filter(({ status }) => status === 'completed' || status === 'failed');

t.test('ACP: an editor gets a file written, read and run, and loads the session in another process', async (t) => {
  const workspace = place.workspace('editor');
  const first = await editor(t, () => choose('accept'));
  const { sessionId } = await first.agent.request('session/new', { cwd: workspace, mcpServers: [] });
  const prompt = [{ type: 'text' as const, text: task }];
  t.match(await first.agent.request('session/prompt', { sessionId, prompt }), { stopReason: 'end_turn' });
  t.equal(readFileSync(join(workspace, 'hello.sh'), 'utf8'), script);
  t.strictSame(
    first.asked.map(({ toolCall }) => toolCall.name),
    ['WriteFile', 'Exec'],
    'what only reads is not asked for',
  );
  t.match(
    first.of('tool_call').map(({ title, status }) => [title, status]),
    [
      ['Write', 'pending'],
      ['Read', 'pending'],
      ['Exec', 'pending'],
    ],
    'each call is announced when the model begins to write it',
  );
  t.match(finished(first.of), [
    { status: 'completed', content: [{ type: 'diff', path: join(workspace, 'hello.sh') }] },
    { status: 'completed', rawOutput: { text: /made of \$\(\(6/ } },
    { status: 'completed', rawOutput: { text: /made of 42/ } },
  ]);
  t.equal(await first.leave(), 0, first.stderr());

  const second = await editor(t, () => choose('decline'));
  await second.agent.request('session/load', { sessionId, cwd: workspace, mcpServers: [] });
  t.match(second.of('user_message_chunk'), [{ content: { text: task } }]);
  t.equal(second.said(), first.said(), 'the earlier messages are replayed');
  t.match(finished(second.of), [{ status: 'completed' }, { status: 'completed' }, { status: 'completed' }]);
  const declined = [{ type: 'text' as const, text: 'run: rm hello.sh' }];
  t.match(await second.agent.request('session/prompt', { sessionId, prompt: declined }), { stopReason: 'end_turn' });
  t.match(finished(second.of).at(-1), { status: 'failed', rawOutput: { outcome: 'declined' } });
  t.ok(existsSync(join(workspace, 'hello.sh')), 'what was declined was not run');
  t.equal(await second.leave(), 0, second.stderr());
  await hub.client.stop(workspace);
});

/** A server on pipes that Node runs. */
const onPipes = (...args: readonly string[]) => ({ transport: 'stdio', command: process.execPath, args });
/** Server that never answers and stays in the state starting. */
const silent = { ...onPipes('-e', 'process.stdin.resume()'), startupTimeoutSec: 3_600 };

t.test(
  'MCP: tools of two servers can be called, a killed server restarts, and all end with the agent server',
  async (t) => {
    const key = 'sk-a-key-of-the-tests';
    const workspace = place.workspace('tools', {
      Api: { Enabled: true, ApiKey: key },
      McpServers: { everything: onPipes(everything), files: onPipes(filesystem, '.'), silent },
      Supervision: { BackoffBaseMs: 20 },
    });
    writeFileSync(join(workspace, 'notes.txt'), 'the notes of the workspace\n');
    const { endpoints, serviceStatus } = await hub.client.ensure({ workspacePath: workspace });
    const asked: unknown[] = [];
    const rpc = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '', {
      onRequest: (method, params) => {
        asked.push({ method, ...params });
        return { decision: 'accept' };
      },
    });
    t.teardown(() => rpc.close());
    const statusOf = async (name: string) => {
      const { data } = (await rpc.request('mcp/status/list', {})) as { data: readonly McpServerStatus[] };
      return data.find((server) => server.name === name);
    };
    const ready = (name: string) =>
      eventually(
        async () => ((await statusOf(name))?.startupState === 'ready' ? statusOf(name) : undefined),
        () => `${name} is ready: ${hubLog(place)}`,
      );
    const talk = async (prompt: string) => answerOf(await say(rpc, workspace, prompt));
    const echo = (message: string) => `call mcp__everything__echo ${JSON.stringify({ message })}`;

    t.match(await talk('echo I am here'), /I am here/);
    t.match(
      await statusOf('silent'),
      { startupState: 'starting' },
      'the agent server is ready before one of its MCP servers',
    );
    t.match(await ready('everything'), { toolCount: Number, lastError: null, serverName: String });
    t.match(await ready('files'), { toolCount: Number, lastError: null });

    await t.test(
      'through JSON-RPC each tool of a server that is not trusted needs approval, also with the hint that it only reads',
      async (t) => {
        t.match(await talk(echo('over the socket')), /over the socket/);
        t.match(await talk('call mcp__files__read_text_file {"path": "notes.txt"}'), /the notes of the workspace/);
        await talk('call mcp__files__write_file {"path": "made.txt", "content": "by their tool"}');
        t.match(asked, [
          { method: 'item/approval/request', target: 'everything/echo {"message":"over the socket"}' },
          { method: 'item/approval/request', target: 'files/read_text_file {"path":"notes.txt"}' },
          { approvalType: 'remoteResource', target: 'files/write_file {"path":"made.txt","content":"by their tool"}' },
        ]);
        t.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'by their tool');
      },
    );

    await t.test('the chat API calls tools of both servers', async (t) => {
      const client = new OpenAI({ baseURL: `${serviceStatus['api']?.url}/v1`, apiKey: key, maxRetries: 0 });
      const ask = async (content: string) => {
        const { choices } = await client.chat.completions.create({ model: '', messages: [{ role: 'user', content }] });
        return choices[0]?.message.content;
      };
      t.match(await ask(echo('over HTTP')), /over HTTP/);
      t.match(await ask('call mcp__files__read_text_file {"path": "notes.txt"}'), /the notes of the workspace/);
      t.match(await ask('call mcp__files__read_text_file {"path": "/etc/passwd"}'), /[Aa]ccess denied/);
      const stream = client.chat.completions.stream({
        model: '',
        messages: [{ role: 'user', content: echo('piece by piece') }],
      });
      t.match((await stream.finalChatCompletion()).choices[0], {
        finish_reason: 'stop',
        message: { content: /piece by piece/ },
      });
    });

    const pidOf = (program: string) => processesUnder(place.root).find(({ argv }) => argv.includes(program))?.pid;
    await t.test('a killed MCP server restarts', async (t) => {
      const killed = pidOf(everything) ?? 0;
      process.kill(killed, 'SIGKILL');
      await eventually(() => !isAlive(killed) || undefined, 'the server has ended');
      await eventually(() => {
        const pid = pidOf(everything);
        return pid !== undefined && pid !== killed ? pid : undefined;
      }, 'a new process runs');
      await ready('everything');
      t.match(await talk(echo('back again')), /back again/);
    });

    const theirs = [everything, filesystem, 'process.stdin.resume()'].map(pidOf);
    t.ok(
      theirs.every((pid) => pid !== undefined),
      'all three run',
    );
    rpc.close();
    await hub.client.stop(workspace);
    t.strictSame(
      processesUnder(place.root).map(({ pid }) => pid),
      [hub.pid],
      'only the Hub is left',
    );
    await hub.shutdown();
  },
);
