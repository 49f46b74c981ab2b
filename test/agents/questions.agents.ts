/** External agents ask a question with their own tool, which is answered once from each client: inbox, page, terminal, ACP editor. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { client, ndJsonStream } from '@agentclientprotocol/sdk';
import t, { type Test } from 'tap';
import type { InboxItem } from '../../src/protocol/index.ts';
import { fieldsOf } from '../../src/protocol/question-fields.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { atTerminal, keys } from '../cli/terminal.ts';
import { eventually, startTestHub } from '../hub/harness.ts';
import { program, programEnvironment } from '../programs.ts';
import { startModel } from './model.ts';
import { agentWorkspace, chosenSubjects, connectTurns } from './scene.ts';

t.setTimeout(1_200_000);

const hub = await startTestHub(t);
const browser = await launchBrowser();
t.teardown(() => browser.close());

/** An answer that chooses an option of the first field. */
function contentOf({ question }: InboxItem['request'], label: string): Readonly<Record<string, string>> {
  const [field] = question ? fieldsOf(question) : [];
  const choice = field?.choices.find((each) => each.label.startsWith(label));
  return field && choice ? { [field.name]: choice.value } : {};
}

/** Whether the latest tool result in a request to the model contains an answer. */
function isResult({ text }: { readonly text: string }, answer: string): boolean {
  const { input, messages } = JSON.parse(text) as { input?: readonly unknown[]; messages?: readonly unknown[] };
  const results = (input ?? messages ?? [])
    .map((item) => JSON.stringify(item))
    .filter((item) => /"type":"(?:\w+_output|tool_result)"/.test(item));
  return results.at(-1)?.includes(answer) === true;
}

/** Agents that can ask questions. */
const asking = ['claude', 'codex'];

const cli = [process.execPath, '--disable-warning=ExperimentalWarning', program('src/cli/main.ts')] as const;
const cliEnvironment = { ...programEnvironment, HOME: hub.home, ORATORIO_HOME: hub.home };

/** Runs the official client library as an editor of `oratorio acp`. It answers each form with the option of the given prefix. */
async function editorWithForms(t: Test, cwd: string, label: string) {
  const [command, ...words] = cli;
  const child = spawn(command, [...words, 'acp', '--no-start'], { cwd, env: cliEnvironment });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const forms: unknown[] = [];
  const { agent } = client({ name: 'an editor' })
    .onNotification('session/update', () => {})
    .onRequest('elicitation/create', ({ params }) => {
      forms.push(params);
      const { properties = {} } =
        (params as { requestedSchema?: { properties?: Record<string, unknown> } }).requestedSchema ?? {};
      const [[name, field] = ['', {}]] = Object.entries(properties);
      const { oneOf = [] } = field as { oneOf?: readonly { const: string; title?: string }[] };
      const chosen = oneOf.find((option) => (option.title ?? option.const).startsWith(label));
      return { action: 'accept' as const, content: { [name]: chosen?.const ?? label } };
    })
    .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>));
  await agent.request('initialize', { protocolVersion: 1, clientCapabilities: { elicitation: { form: {} } } });
  const { sessionId } = await agent.request('session/new', { cwd, mcpServers: [] });
  const prompt = (text: string) => agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  return { prompt, forms };
}

for (const subject of chosenSubjects().filter(({ name }) => asking.includes(name))) {
  t.test(
    `a question of ${subject.name} is answered once from each client, and the answer reaches its model`,
    async (t) => {
      const model = await startModel();
      t.teardown(() => model.close());
      const { workspace } = agentWorkspace(t, subject, model.url);
      const { endpoints, page: path } = await hub.ensure(workspace);
      const talk = await connectTurns(t, endpoints['appServerWebSocket'] ?? '');
      const { thread } = (await talk.client.request('thread/start', {})) as { thread: { id: string } };
      const question = () =>
        eventually(async () => {
          const items = (await hub.call('GET', '/v1/inbox')).body as InboxItem[];
          return items.find(({ kind }) => kind === 'question');
        }, 'the question waits');
      const learned = (from: number, answer: string) =>
        model.requests.slice(from).some((request) => isResult(request, answer));

      const first = await talk.start(thread.id, { type: 'text', text: 'Please ask me' });
      const { workspaceId, request } = await question();
      const address = `/v1/inbox/${workspaceId}/${request.requestId}`;

      const answer = { action: 'accept', content: contentOf(request, 'Postgres') };
      const answers = await Promise.all([hub.call('POST', address, answer), hub.call('POST', address, answer)]);
      t.same(answers.map(({ status }) => status).sort(), [200, 409], 'the first answer counts');
      t.equal((await first.ended).status, 'completed');
      t.ok(learned(1, 'Postgres'), 'the model has the answer of the inbox');

      const asked = model.requests.length;
      const second = await talk.start(thread.id, { type: 'text', text: 'Please ask me' });
      await question();
      const page = await browser.newPage();
      page.setDefaultTimeout(120_000);
      await page.goto(`${hub.lock.apiBaseUrl}${path}#token=${pageToken(hub.home)}&at=/chat/${thread.id}`);
      await page.getByText('SQLite').click();
      await page.getByRole('button', { name: 'Answer', exact: true }).click();
      t.equal((await second.ended).status, 'completed');
      t.ok(learned(asked + 1, 'SQLite'), 'the model has the answer of the page');
      await page.close();

      const typed = model.requests.length;
      const terminal = atTerminal(t, [...cli, 'chat', '--no-start'], { env: cliEnvironment, cwd: workspace });
      await terminal.answer('/help shows commands', `Please ask me${keys.enter}`);
      await terminal.answer('Postgres', `2${keys.enter}`);
      // Codex adds a field for a note.
      for (const _ of request.question ? fieldsOf(request.question).slice(1) : [])
        await terminal.answer('an empty line skips', keys.enter);
      await terminal.shows('All done.');
      terminal.type('\u0004');
      t.equal((await terminal.ended).code, 0);
      t.ok(learned(typed + 1, 'Postgres'), 'the model receives the answer from the terminal');

      const shown = model.requests.length;
      const editor = await editorWithForms(t, workspace, 'SQLite');
      t.match(await editor.prompt('Please ask me'), { stopReason: 'end_turn' });
      t.equal(editor.forms.length, 1);
      t.ok(learned(shown + 1, 'SQLite'), 'the model receives the answer from the editor');
      await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
    },
  );
}
