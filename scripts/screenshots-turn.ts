/**
 * Takes the pictures of a turn that waits or changes its course: a real Hub, an agent server for each state, a stand-in for the
 * model.
 *
 *   npm run build && node scripts/screenshots-turn.ts [directory]      default: docs/images
 */
import type { Page } from 'playwright-core';
import { begin, clientOf, dashboardUrl } from '../test/e2e/bookshop.ts';
import {
  answered,
  hang,
  type Reply,
  rateLimited,
  refusal,
  startMockUpstream,
} from '../test/fixtures/upstream/mock-upstream.ts';
import { takePictures, withStudio } from './camera.ts';

const price = { Price: { input: 3, output: 15, cachedInput: 0.3 } };
const used = { prompt_tokens: 41_000, completion_tokens: 900 };
const listing = { name: 'FindFiles', arguments: { pattern: '**/*.ts' } };

interface Scene {
  readonly state: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly reply: Reply;
}

const asksForSummary = (words: string): boolean => words.startsWith('Summarise the conversation');

const scenes: readonly Scene[] = [
  {
    state: 'retrying',
    config: {},
    reply: (request) =>
      request.number === 0 ? answered(request, { toolCalls: [listing], usage: used }) : rateLimited(90),
  },
  {
    state: 'compacting',
    config: { Compaction: { ContextWindow: 8_000 } },
    reply: (request) => {
      const [first] = request.body.messages;
      if (asksForSummary(String(first?.content))) return [hang];
      return answered(request, { toolCalls: [listing], usage: { ...used, prompt_tokens: 7_900 } });
    },
  },
  {
    state: 'budgetReached',
    config: { Models: { 'folio-large': price }, Budget: { TurnUsd: 0.1 } },
    reply: (request) => answered(request, { toolCalls: [listing], usage: used }),
  },
  {
    state: 'inferring',
    config: {
      UpstreamRetries: 1,
      FallbackModels: ['folio-small'],
      Models: { 'folio-large': price, 'folio-small': price },
    },
    reply: (request) => {
      if (request.body.model === 'folio-small') return [hang];
      if (request.number === 0) return answered(request, { toolCalls: [listing], usage: used });
      return refusal(429, { message: 'You exceeded your current quota.', code: 'insufficient_quota' });
    },
  },
];

const nameOf = ({ state }: Scene): string => (state === 'inferring' ? 'fallback' : state);

async function lookAt(page: Page, state: string): Promise<void> {
  await page.locator('[role=treeitem]', { hasText: state }).first().click();
  await page.locator(`.node.active[data-state$="${state}"]`).waitFor({ state: 'attached' });
}

await withStudio(async (studio) => {
  const { t, place, hub } = studio;
  for (const scene of scenes) {
    const name = nameOf(scene);
    const upstream = await startMockUpstream(t, scene.reply);
    const settings = { EndPoint: upstream.url, ApiKey: 'sk-of-the-bookshop', Model: 'folio-large', ...scene.config };
    const workspacePath = place.workspace(name, settings);
    await hub.client.ensure({ workspacePath });
    // The question about the budget stays without an answer.
    const client = await clientOf(t, hub.client, workspacePath, { onRequest: () => new Promise(() => undefined) });
    const threadId = await begin(client, workspacePath, 'The missing cent');
    const input = [{ type: 'text', text: 'Find out where the cent is lost.' }];
    await client.request('turn/start', { threadId, input });
    const addressOf = (at: string) => dashboardUrl(place, hub.client, workspacePath, at);
    const prepare = async (page: Page) => {
      await lookAt(page, scene.state);
      if (name !== 'fallback') return;
      await page.goto(await addressOf(`/sessions/${threadId}`));
      await page.locator('.bar-row', { hasText: 'model.replaced' }).waitFor();
    };
    await takePictures(studio, [{ name: `turn-${name}`, at: '/actors', prepare }], addressOf);
  }
});
