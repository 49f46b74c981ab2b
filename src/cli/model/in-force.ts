import { type FactSource, modelSettingsOf, type SandboxStatus, sandboxStatus, withModels } from '../../agent/index.ts';
import { maskedAddress } from '../../lib/index.ts';
import type { ModelPrice } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { type Effective, sourceIn } from './effective.ts';

/** A value with its source. */
interface SourcedValue<T> {
  readonly value: T;
  readonly source: string;
}

/** Model, limits and prices of a workspace. */
export interface InForce {
  readonly workspace: string | null;
  readonly provider: SourcedValue<string>;
  readonly endPoint: SourcedValue<string>;
  readonly model: SourcedValue<string>;
  /** Source of the key; never the key. */
  readonly key: string;
  readonly effort: SourcedValue<string | null>;
  readonly contextWindow: SourcedValue<number>;
  readonly maxOutputTokens: SourcedValue<number | null>;
  /** In US dollars per million tokens. */
  readonly price: SourcedValue<ModelPrice | null>;
  readonly fallbackModels: readonly string[];
  /** In US dollars; 0 sets no limit. */
  readonly budget: { readonly turnUsd: number; readonly sessionUsd: number; readonly dayUsd: number };
  /** Sandbox of the agent's commands. */
  readonly sandbox: SandboxStatus & { readonly network: 'allow' | 'deny' };
  readonly restrictedSettings: readonly string[];
}

const sources: Readonly<Record<FactSource, string>> = {
  settings: 'Models of config.json',
  service: 'the provider',
  refreshed: 'the refreshed catalogue',
  catalogue: 'the catalogue',
  family: 'the family of its name',
  default: 'assumed, as nothing is known',
};

/** Collects the effective values of a configuration, without a request to the provider. @throws ModelError */
export async function inForce(
  effective: Effective,
  { home, env }: Pick<CommandContext, 'home' | 'env'>,
): Promise<InForce> {
  const { config, workspace, restrictedSettings } = effective;
  const { Sandbox, Network: network } = config.Tools.Shell;
  const sandbox = { ...(await sandboxStatus(Sandbox, env, network)), network };
  const from = (setting: string, otherwise: string) => sourceIn(effective, setting)?.file ?? otherwise;
  const settings = modelSettingsOf(config);
  const { main } = settings;
  return withModels(config, home, async (models) => {
    const facts = models.facts();
    const source = (fact: FactSource | undefined) => (fact === undefined ? 'unknown' : sources[fact]);
    return {
      workspace: workspace ?? null,
      provider: {
        value: main.kind,
        source: from('Provider', main.kind === 'demo' ? 'nothing is connected' : 'derived from EndPoint and Model'),
      },
      endPoint: { value: maskedAddress(main.endPoint), source: from('EndPoint', 'the usual one') },
      model: { value: models.model, source: from('Model', 'the usual one of the provider') },
      key: keyOf(effective),
      effort: { value: config.ReasoningEffort ?? null, source: from('ReasoningEffort', 'as the provider does') },
      contextWindow: { value: facts.contextWindow, source: source(facts.sources.contextWindow) },
      maxOutputTokens: { value: facts.maxOutputTokens ?? null, source: source(facts.sources.maxOutputTokens) },
      price: { value: facts.price ?? null, source: source(facts.sources.price) },
      fallbackModels: config.FallbackModels,
      budget: {
        turnUsd: config.Budget.TurnUsd,
        sessionUsd: config.Budget.SessionUsd,
        dayUsd: config.Budget.DayUsd,
      },
      sandbox,
      restrictedSettings,
    };
  });
}

function keyOf(effective: Effective): string {
  const key = sourceIn(effective, 'ApiKey');
  const variable = /^\$\{(\w+)\}$/.exec(String(key?.value ?? ''))?.[1];
  if (key && variable !== undefined) return `of the environment variable ${variable} (${key.file})`;
  if (key) return `set (${key.file})`;
  const command = sourceIn(effective, 'ApiKeyCommand');
  return command ? `printed by a command (${command.file})` : 'none';
}

const number = new Intl.NumberFormat('en-GB');

/** A price for people: `$3 in, $15 out, $0.3 cached`. */
export function priceText(price: ModelPrice | null | undefined): string {
  if (!price) return 'unknown';
  const cached = price.cachedInput === undefined ? '' : `, $${price.cachedInput} cached`;
  return `$${price.input} in, $${price.output} out${cached}`;
}

/** Names and values, as `pairs` prints them. */
export function rowsOf(state: InForce): (readonly [string, string])[] {
  const { provider, endPoint, model, effort, contextWindow, maxOutputTokens, price, budget } = state;
  const limits = Object.entries({ turn: budget.turnUsd, thread: budget.sessionUsd, day: budget.dayUsd });
  const set = limits.filter(([, usd]) => usd > 0).map(([of, usd]) => `$${usd} a ${of}`);
  const held = (value: string, source: string) => `${value} (${source})`;
  return [
    ['provider', held(provider.value, provider.source)],
    ...(provider.value === 'demo' ? [] : [['end point', held(endPoint.value || 'usual', endPoint.source)] as const]),
    ['model', held(model.value, model.source)],
    ['key', state.key],
    ['effort', effort.value === null ? effort.source : held(effort.value, effort.source)],
    ['window', held(`${number.format(contextWindow.value)} tokens`, contextWindow.source)],
    [
      'answer',
      maxOutputTokens.value === null
        ? 'limit unknown'
        : held(`${number.format(maxOutputTokens.value)} tokens`, maxOutputTokens.source),
    ],
    ['price', price.value === null ? 'unknown' : `${held(priceText(price.value), price.source)} per million tokens`],
    ['fallback', state.fallbackModels.join(', ') || 'none'],
    ['budget', set.join(', ') || 'none'],
    ['sandbox', sandboxText(state.sandbox)],
  ];
}

function sandboxText({ mode, available, reason, network }: InForce['sandbox']): string {
  if (!available) return `none: ${reason}${mode === 'off' ? '' : ` (${mode})`}`;
  return `${mode}, ${network === 'allow' ? 'with' : 'without'} network (${reason})`;
}
