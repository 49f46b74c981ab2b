/** Realistic sample workspace: a small bookshop, and a model that plays the conversations below. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AppServerClient, type AppServerClientOptions, type HubClient, startThread } from '../../src/client/index.ts';
import { dashboardToken } from '../../src/supervise/index.ts';
import {
  type Answer,
  answered,
  type MockUpstream,
  refusal,
  type Script,
  startMockUpstream,
  type UpstreamRequest,
} from '../fixtures/upstream/mock-upstream.ts';
import { lastWords, toolCall } from './agent-server.ts';
import type { Place, Teardown } from './harness.ts';

const sources: Readonly<Record<string, string>> = {
  'package.json':
    '{ "name": "bookshop", "version": "1.4.0", "type": "module", "scripts": { "test": "node --test" } }\n',
  'CHANGELOG.md': '# Changes\n\n## 1.4.0\n- Vouchers\n- Orders can be paid by invoice\n',
  'src/total.js':
    'export const total = (lines, voucher = 0) =>\n  lines.reduce((sum, { cents, count }) => sum + cents * count, 0) - Math.ceil(voucher);\n',
  'test/total.test.js':
    "import test from 'node:test';\nimport assert from 'node:assert';\nimport { total } from '../src/total.js';\ntest('a voucher of half a cent costs nobody a cent', () => assert.equal(total([{ cents: 999, count: 1 }], 0.4), 999));\n",
};

const read = (path: string) => toolCall('ReadFile', { path });
const run = (command: string) => toolCall('Exec', { command });
const spent = (prompt_tokens: number, completion_tokens: number) => ({ prompt_tokens, completion_tokens });

/** Prompts, and the answers of the model to each, one per request. */
export const conversations = {
  voucher: {
    ask: 'Why is an order with a voucher one cent too cheap? Fix it, with the test.',
    rounds: () => [
      {
        reasoning:
          'A cent that is missing smells of rounding. Where is the voucher subtracted, and is it rounded there?',
        toolCalls: [toolCall('GrepFiles', { pattern: 'voucher' }), read('src/total.js')],
        usage: spent(2_140, 96),
      },
      {
        reasoning: 'Math.ceil rounds every fraction of a cent up, in favour of nobody but the voucher.',
        text: 'The voucher is rounded **up**. First I want to see the test fail.',
        toolCalls: [run('node --test')],
        usage: spent(2_890, 121),
      },
      {
        reasoning: 'It fails as expected. Math.round is what the invoice does, too.',
        toolCalls: [toolCall('EditFile', { path: 'src/total.js', oldText: 'Math.ceil', newText: 'Math.round' })],
        usage: spent(4_310, 88),
      },
      { toolCalls: [run('node --test')], usage: spent(4_502, 41) },
      {
        text: 'Fixed: `total` rounded the voucher up with `Math.ceil`; now it rounds to the nearest cent, as the invoice does. The test that failed before passes.',
        usage: spent(4_960, 77),
      },
    ],
  },
  notes: {
    ask: 'Draft the release notes of 1.4.0 from the changelog.',
    rounds: () => [
      { toolCalls: [read('CHANGELOG.md'), read('package.json')], usage: spent(1_780, 52) },
      {
        reasoning: 'Two entries. Short notes, then, without adjectives.',
        toolCalls: [
          toolCall('WriteFile', {
            path: 'NOTES.md',
            content: '# Bookshop 1.4.0\n\nVouchers, and orders on invoice.\n',
          }),
        ],
        usage: spent(2_060, 74),
      },
      { text: 'The notes are in `NOTES.md`: vouchers, and payment by invoice.', usage: spent(2_210, 33) },
    ],
  },
  missing: {
    ask: 'What does docs/payment.md say about refunds?',
    rounds: () => [
      { toolCalls: [read('docs/payment.md')], usage: spent(1_690, 31) },
      { text: 'There is no `docs/payment.md` in this workspace, so it says nothing.', usage: spent(1_804, 29) },
    ],
  },
  refused: {
    ask: 'Summarise everything in the archive of orders.',
    rounds: () => 'refused',
  },
  publish: {
    ask: 'Publish 1.4.0 to the registry.',
    rounds: () => [
      {
        reasoning: 'To publish cannot be taken back: somebody will be asked first.',
        toolCalls: [run('npm publish --dry-run')],
        usage: spent(1_730, 44),
      },
      { text: 'Nothing was published.', usage: spent(1_801, 12) },
    ],
  },
  digest: {
    ask: 'What has changed since yesterday?',
    rounds: () => [
      { toolCalls: [run('ls -t src test')], usage: spent(1_512, 30) },
      { text: 'Since yesterday: `src/total.js` and its test.', usage: spent(1_633, 22) },
    ],
  },
  thought: {
    ask: 'Is the stock list sorted?',
    rounds: () => [{ reasoning: 'One look is enough.', text: 'Yes, by title.', usage: spent(1_402, 18) }],
  },
} as const satisfies Readonly<
  Record<string, { readonly ask: string; readonly rounds: () => readonly Answer[] | 'refused' }>
>;

/** @param paceMs between two pieces of an answer */
function play(request: UpstreamRequest, paceMs: number): Script {
  const { words, answers } = lastWords(request);
  const found = Object.values(conversations).find(({ ask }) => words.trim() === ask);
  const rounds = found?.rounds();
  if (rounds === 'refused') {
    return refusal(400, { message: 'The request exceeds the context of this model.', code: 'context_length_exceeded' });
  }
  return answered(request, { paceMs, ...(rounds?.[answers] ?? { text: 'So far: a question about the shop.' }) });
}

export interface Bookshop {
  readonly workspacePath: string;
  readonly upstream: MockUpstream;
}

/** Makes the workspace and the model that answers in it. */
export async function makeBookshop(
  t: Teardown,
  place: Place,
  { config = {}, paceMs = 0, name = 'bookshop' } = {} as {
    readonly config?: Parameters<Place['workspace']>[1];
    readonly paceMs?: number;
    readonly name?: string;
  },
): Promise<Bookshop> {
  const upstream = await startMockUpstream(t, (request) => play(request, paceMs));
  const workspacePath = place.workspace(name, {
    EndPoint: upstream.url,
    ApiKey: 'sk-of-the-bookshop',
    Model: 'folio-large',
    ...config,
  });
  for (const [path, text] of Object.entries(sources)) {
    mkdirSync(dirname(join(workspacePath, path)), { recursive: true });
    writeFileSync(join(workspacePath, path), text);
  }
  return { workspacePath, upstream };
}

/** Address that opens the dashboard of a workspace with its token, at this view. */
export async function dashboardUrl(place: Place, hub: HubClient, workspacePath: string, at = ''): Promise<string> {
  const { endpoints, canonicalWorkspacePath } = await hub.byWorkspace(workspacePath);
  const token = dashboardToken(place.home, canonicalWorkspacePath);
  const fragment = new URLSearchParams({ token, ...(at !== '' && { at }) });
  return `${endpoints['dashboard']}#${fragment}`;
}

/** Connection to the agent server of a workspace, at the address in the record of the Hub. */
export async function clientOf(
  t: Teardown,
  hub: HubClient,
  workspacePath: string,
  options: AppServerClientOptions = {},
): Promise<AppServerClient> {
  const { endpoints } = await hub.byWorkspace(workspacePath);
  const client = await AppServerClient.connect(endpoints['appServerWebSocket'] ?? '', {
    timeoutMs: 120_000,
    ...options,
  });
  t.teardown(() => client.close());
  return client;
}

export type Conversation = keyof typeof conversations;

/** Begins a session with a name. Gives its id. */
export const begin = (client: AppServerClient, workspacePath: string, displayName?: string): Promise<string> =>
  startThread(client, { workspacePath, ...(displayName !== undefined && { displayName }) });
