/** Facts and costs of models: the catalogue of the repository, its layers, and sums of money. */
import fc from 'fast-check';
import t from 'tap';
import * as v from 'valibot';
import {
  builtInCatalogue,
  Catalogue,
  costOf,
  type FactsQuery,
  factsOf,
  familyOf,
  modelIn,
  namesOf,
  nearestEffort,
} from '../../../src/agent/providers/catalogue/index.ts';
import { vendorOf } from '../../../src/agent/providers/router.ts';
import { type ModelPrice, reasoningEfforts } from '../../../src/protocol/index.ts';

const empty: Catalogue = { released: '2026-01-01', providers: {} };
const query = (more: Partial<FactsQuery>): FactsQuery => ({
  provider: 'openai',
  vendor: 'openai',
  model: 'm',
  settings: undefined,
  contextWindow: 0,
  service: undefined,
  refreshed: undefined,
  catalogue: empty,
  ...more,
});

t.test('the catalogue of the repository is valid, dated, and has prices of every provider', async (t) => {
  const catalogue = v.parse(Catalogue, await builtInCatalogue());
  t.match(catalogue.released, /^20\d\d-\d\d-\d\d$/);
  const names = Object.keys(catalogue.providers);
  t.ok(names.length >= 10, `${names.length} providers`);
  for (const [name, models] of Object.entries(catalogue.providers)) {
    t.ok(models.length > 0, name);
    t.equal(new Set(models.map(({ id }) => id)).size, models.length, `${name} has each model once`);
    t.ok(
      models.some(({ price }) => price !== undefined),
      `${name} has prices`,
    );
    for (const { id, contextWindow, maxOutputTokens = 0 } of models) {
      if (maxOutputTokens > contextWindow * 2) t.fail(`${id} answers with more than its window`);
    }
  }
});

t.test('each fact comes from the strongest layer that has it, and says which', async (t) => {
  const layer = (contextWindow: number): Catalogue => ({
    released: '2026-01-01',
    providers: { openai: [{ id: 'm', contextWindow, price: { input: contextWindow, output: 1 }, efforts: ['low'] }] },
  });
  const all = {
    settings: { ContextWindow: 1_000 },
    service: { contextWindow: 2_000 },
    refreshed: layer(3_000),
    catalogue: layer(4_000),
  };
  const windows = (more: Partial<FactsQuery>) => {
    const { contextWindow, sources } = factsOf(query(more));
    return [contextWindow, sources.contextWindow];
  };
  t.strictSame(windows(all), [1_000, 'settings']);
  t.strictSame(windows({ ...all, settings: undefined, contextWindow: 1_500 }), [1_500, 'settings']);
  t.strictSame(windows({ ...all, settings: undefined }), [2_000, 'service']);
  t.strictSame(windows({ ...all, settings: {}, service: {} }), [3_000, 'refreshed']);
  t.strictSame(windows({ catalogue: layer(4_000) }), [4_000, 'catalogue']);
  t.strictSame(windows({ model: 'claude-opus-99' }), [200_000, 'family']);
  t.strictSame(windows({}), [128_000, 'default']);
  const { price, sources } = factsOf(query({ ...all, refreshed: undefined }));
  t.strictSame([price?.input, sources.price], [4_000, 'catalogue'], 'fact by fact');
});

t.test('a model is found by its name, without its date, and without its vendor', async (t) => {
  const models = [{ id: 'gpt-4o', contextWindow: 1, efforts: [] }];
  for (const name of ['gpt-4o', 'gpt-4o-2024-08-06', 'gpt-4o-latest', 'openai/gpt-4o', 'openai/gpt-4o:free']) {
    t.equal(modelIn(models, name)?.id, 'gpt-4o', name);
  }
  for (const name of ['gpt-4', 'gpt-4o-mini', '', '/']) t.equal(modelIn(models, name), undefined, name);
  t.strictSame(namesOf('a/b-2026-01-31'), ['a/b-2026-01-31', 'a/b', 'b-2026-01-31', 'b']);
});

t.test('a resold model keeps its window and has no price; one without any price stays unknown', async (t) => {
  const catalogue: Catalogue = {
    released: '2026-01-01',
    providers: { anthropic: [{ id: 'claude-x', contextWindow: 9_000, price: { input: 1, output: 2 }, efforts: [] }] },
  };
  const resold = factsOf(query({ vendor: 'openrouter', model: 'anthropic/claude-x', catalogue }));
  t.match(resold, { contextWindow: 9_000, price: undefined });
  t.match(factsOf(query({ vendor: undefined, model: 'claude-x', catalogue })), { price: undefined });
  t.match(factsOf(query({ vendor: 'anthropic', model: 'claude-x', catalogue })), { price: { input: 1 } });
  t.equal(vendorOf({ kind: 'openai-compatible', endPoint: 'http://127.0.0.1:1234/v1' }), undefined);
  t.equal(vendorOf({ kind: 'openai-compatible', endPoint: 'https://api.deepseek.com/v1' }), 'deepseek');
  t.equal(vendorOf({ kind: 'anthropic', endPoint: 'http://127.0.0.1:1' }), 'anthropic');
});

t.test('families are known by version, also those that are not out yet', async (t) => {
  for (const name of [
    'gpt-5',
    'gpt-5.6-sol',
    'gpt-17',
    'vendor/gpt-6',
    'o9',
    'claude-opus-12',
    'gemini-3',
    'gemini-12.5',
  ]) {
    t.ok(familyOf(name), name);
  }
  for (const name of ['gpt-4o', 'gemini-1.5-pro', 'llama3', 'gpt', '']) t.equal(familyOf(name), undefined, name);
});

t.test('an effort that a model lacks becomes the nearest it has, the lesser of two', async (t) => {
  t.equal(nearestEffort('xhigh', ['low', 'high']), 'high');
  t.equal(nearestEffort('none', ['low', 'high']), 'low');
  t.equal(nearestEffort('medium', ['low', 'high']), 'low');
  t.equal(nearestEffort('high', undefined), 'high', 'unknown: as it is');
  t.equal(nearestEffort('high', []), undefined, 'a model that does not reason');
  const some = fc.subarray([...reasoningEfforts], { minLength: 1 });
  fc.assert(
    fc.property(fc.constantFrom(...reasoningEfforts), some, (wanted, efforts) => {
      const nearest = nearestEffort(wanted, efforts);
      const distance = (effort = wanted) =>
        Math.abs(reasoningEfforts.indexOf(effort) - reasoningEfforts.indexOf(wanted));
      return nearest !== undefined && efforts.every((effort) => distance(nearest) <= distance(effort));
    }),
  );
});

const price: ModelPrice = { input: 2, output: 10, cachedInput: 0.2, cacheWrite: 2.5 };

t.test('a cost is that of fresh, cached and written input and of the output', async (t) => {
  const million = 1_000_000;
  const counts = { inputTokens: million, outputTokens: 0 };
  t.equal(costOf(counts, price), 2);
  t.equal(costOf({ ...counts, cachedInputTokens: million }, price), 0.2);
  t.equal(costOf({ ...counts, cacheWriteTokens: million }, price), 2.5);
  t.equal(costOf({ inputTokens: 0, outputTokens: million }, price), 10);
  t.equal(
    costOf({ ...counts, cachedInputTokens: million }, { input: 2, output: 1 }),
    2,
    'no price for the cache: the usual',
  );
  const tiers = [
    { aboveInput: 200_000, input: 4, output: 20 },
    { aboveInput: 500_000, input: 8, output: 40 },
  ];
  t.equal(costOf({ inputTokens: 200_000, outputTokens: 0 }, { ...price, tiers }), 0.4, 'up to the limit');
  t.equal(costOf({ inputTokens: 300_000, outputTokens: 0 }, { ...price, tiers }), 1.2);
  t.equal(costOf({ inputTokens: million, outputTokens: million }, { ...price, tiers }), 48);
});

t.test('property: a cost is never negative, never below that of its output, and grows with the tokens', async (t) => {
  const count = fc.nat(10_000_000);
  const usd = fc.double({ min: 0, max: 1_000, noNaN: true });
  const prices = fc.record({ input: usd, output: usd, cachedInput: usd, cacheWrite: usd });
  const counts = fc.record({
    inputTokens: count,
    outputTokens: count,
    cachedInputTokens: count,
    cacheWriteTokens: count,
  });
  fc.assert(
    fc.property(counts, prices, count, (used, price, more) => {
      const cost = costOf(used, price);
      const grown = costOf({ ...used, outputTokens: used.outputTokens + more }, price);
      return cost >= (used.outputTokens * price.output) / 1e6 - 1e-9 && grown >= cost - 1e-9;
    }),
  );
  t.end();
});
