/** External agents that ask a question with their own tool, answered from each client, once. */
import t from 'tap';
import type { InboxItem } from '../../src/protocol/index.ts';
import { fieldsOf } from '../../src/protocol/question-fields.ts';
import { pageToken } from '../../src/supervise/index.ts';
import { launchBrowser } from '../browser.ts';
import { eventually, startTestHub } from '../hub/harness.ts';
import { startModel } from './model.ts';
import { agentWorkspace, chosenSubjects, connectTurns } from './scene.ts';

t.setTimeout(1_200_000);

const hub = await startTestHub(t);
const browser = await launchBrowser();
t.teardown(() => browser.close());

/** An answer that chooses an option of the first field. */
function contentOf(request: InboxItem['request'], label: string): Readonly<Record<string, string>> {
  const [field] = fieldsOf(request as Parameters<typeof fieldsOf>[0]);
  const choice = field?.choices.find((each) => each.label.startsWith(label));
  return field && choice ? { [field.name]: choice.value } : {};
}

/** Agents that ask. Codex gives its model a tool for questions, but asked none in this test. */
const asking = ['claude'];

for (const subject of chosenSubjects().filter(({ name }) => asking.includes(name))) {
  t.test(
    `a question of ${subject.name} is answered at the inbox and on the page, and the answer reaches its model`,
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
        model.requests.slice(from).some(({ text }) => text.includes(answer));

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
      await hub.call('POST', '/v1/appservers/stop', { workspacePath: workspace });
    },
  );
}
