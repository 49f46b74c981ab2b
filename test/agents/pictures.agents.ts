/** Takes the pictures of docs/agents.md: two external agents, with their real packages, in two workspaces of one Hub. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Picture, takePictures, withStudio } from '../../scripts/camera.ts';
import type { PresetName } from '../../src/external/index.ts';
import { runTurn } from '../e2e/agent-server.ts';
import { begin, clientOf, dashboardUrl } from '../e2e/bookshop.ts';
import { oratorio } from '../e2e/harness.ts';
import { eventually } from '../hub/harness.ts';
import { type Script, startModel } from './model.ts';
import { agentSettings } from './scene.ts';
import { subjects } from './subjects.ts';

interface Exchange {
  readonly ask: string;
  readonly command: string;
  readonly answer: string;
}

interface Scene {
  readonly agent: PresetName;
  readonly workspace: string;
  readonly title: string;
  readonly files: Readonly<Record<string, string>>;
  readonly exchanges: readonly Exchange[];
  /** Exchange whose command is never decided about. */
  readonly open?: Exchange;
}

const scenes: readonly Scene[] = [
  {
    agent: 'codex',
    workspace: 'bookshop',
    title: 'Release notes',
    files: { 'CHANGELOG.md': '# Changes\n\n## 1.4.0\n- Vouchers\n- Orders can be paid by invoice\n' },
    exchanges: [
      {
        ask: 'Draft the release notes of 1.4.0 from the changelog.',
        command: 'grep ^- CHANGELOG.md | tee NOTES.md',
        answer: 'The notes are in `NOTES.md`: vouchers, and payment by invoice.',
      },
    ],
  },
  {
    agent: 'opencode',
    workspace: 'stockroom',
    title: 'Stock list',
    files: { 'stock.csv': 'title,count\nEmma,4\nMiddlemarch,0\nPersuasion,2\nVilette,0\n' },
    exchanges: [
      {
        ask: 'Which books are out of stock?',
        command: 'grep ,0 stock.csv',
        answer: 'Two books are out of stock: **Middlemarch** and **Vilette**.',
      },
    ],
    open: {
      ask: 'The second one is misspelt. Correct it in the list.',
      command: 'sed -i s/Vilette/Villette/ stock.csv',
      answer: 'The title is corrected.',
    },
  },
];

const all = scenes.flatMap(({ exchanges, open }) => [...exchanges, ...(open ? [open] : [])]);
const exchangeOf = (prompt: string): Exchange | undefined => all.find(({ ask }) => prompt.includes(ask));
const script: Script = {
  command: (prompt) => exchangeOf(prompt)?.command,
  answer: (prompt) => exchangeOf(prompt)?.answer ?? 'Books and their stock',
};
/** Waits as a person who reads before an answer; an open question stays open. */
const decide = async (params: unknown): Promise<unknown> => {
  if (scenes.some(({ open }) => open && JSON.stringify(params).includes(open.command))) return new Promise(() => {});
  return { decision: 'accept' };
};

await withStudio(async (studio) => {
  const { t, place, hub } = studio;
  const model = await startModel(script);
  t.teardown(() => model.close());
  for (const { agent, workspace, title, files, exchanges, open } of scenes) {
    const subject = subjects.find(({ name }) => name === agent);
    if (!subject) throw new Error(`${agent} is no agent of these tests.`);
    const { Agent } = agentSettings(t, subject, model.url);
    const workspacePath = place.workspace(workspace, { Agent });
    mkdirSync(workspacePath, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(workspacePath, name), text);
    await hub.client.ensure({ workspacePath });
    const client = await clientOf(t, hub.client, workspacePath, {
      clientInfo: { name: 'phone', version: '1' },
      onRequest: (_, params) => decide(params),
    });
    const id = await begin(client, workspacePath, title);
    for (const { ask } of exchanges) await runTurn(client, id, ask);
    if (open) {
      await client.request('turn/start', { threadId: id, input: [{ type: 'text', text: open.ask }] });
      await eventually(async () => (await hub.client.inbox()).length > 0 || undefined, 'the question is in the inbox');
    }
    const picture: Picture = {
      name: `agents-${agent}`,
      at: `/chat/${id}`,
      prepare: async (page) => {
        await page.locator('.row-end', { hasText: 'Done' }).last().waitFor();
        if (open) await page.locator('button:enabled', { hasText: 'Decline' }).waitFor();
      },
    };
    await takePictures(studio, [picture], (at) => dashboardUrl(place, hub.client, workspacePath, at));
  }
  const { stdout } = await oratorio(place, ['inspect', '--print-url']);
  const overview: Picture = {
    name: 'agents-overview',
    at: '/overview',
    prepare: async (page) => {
      for (const { agent } of scenes) await page.getByText(agent).first().waitFor();
    },
  };
  await takePictures(studio, [overview], (at) => `${stdout.trim()}&at=${at}`);
});
