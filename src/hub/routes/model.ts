import type * as v from 'valibot';
import type { LiveTest } from '../../agent/index.ts';
import { loadConfig } from '../../config/index.ts';
import { type AnyRoute, json } from '../../http/index.ts';
import { isHttpUrl } from '../../lib/index.ts';
import {
  type KnownProvider,
  knownProviderNames,
  knownProviders,
  type ModelLogin,
  ModelLoginInput,
  type ModelProvider,
  type ModelTest,
  ModelTestInput,
} from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import type { Registry } from '../registry.ts';
import { hubRoutes } from '../route-table.ts';
import type { Bind } from './bind.ts';
import { refusing } from './workspaces.ts';

export interface ModelRoutesOptions {
  readonly registry: Pick<Registry, 'canonical'>;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const outcomes: Readonly<Record<string, ModelTest['outcome']>> = {
  upstreamUnauthorized: 'refused',
  upstreamQuotaExceeded: 'refused',
  upstreamRateLimited: 'refused',
  upstreamRejected: 'refused',
  unknownModel: 'unknownModel',
};

const noTools = 'The model did not call the offered tool: an agent needs a model that can call tools.';

function testOf(test: LiveTest, model: string): ModelTest {
  if (!test.ok) {
    const { code, message, hint } = test;
    return { outcome: outcomes[code] ?? 'unreachable', model, firstTokenMs: null, message, hint };
  }
  const { firstTokenMs, toolCalls } = test;
  return {
    outcome: 'answered',
    model: test.model,
    firstTokenMs,
    message: toolCalls === 'called' ? '' : noTools,
    hint: null,
  };
}

/** Routes that connect and test a model, like `oratorio login`. */
export function modelRoutes(bind: Bind, { registry, home, environment: env }: ModelRoutesOptions): AnyRoute[] {
  /** Never aborts, because the test has its own time limit. */
  const signal = new AbortController().signal;

  async function logIn(input: v.InferOutput<typeof ModelLoginInput>): Promise<ModelLogin> {
    const { keptSettings, liveTest, planLogin } = await import('../../agent/index.ts');
    const known: KnownProvider = knownProviders[input.provider];
    const isOther = input.provider === 'other';
    if (isOther !== (input.endPoint !== undefined) || (isOther && !isHttpUrl(input.endPoint ?? '')))
      throw hubError('invalidRequest', 'endPoint must be an http or https URL, and is only for the provider `other`.');
    const kept = input.endPoint === undefined ? keptSettings({ home, env }, known) : undefined;
    if (known.keyPage !== undefined && known.keyPage !== '' && input.apiKey === undefined)
      throw hubError('invalidRequest', `A key is needed: get one at ${known.keyPage}`);
    const account = {
      kind: known.kind,
      endPoint: input.endPoint ?? kept?.endPoint ?? known.endPoint,
      ...{ ApiKey: input.apiKey, ApiKeyCommand: undefined, kept },
    };
    const model = input.model || kept?.model || known.model || '';
    const change = refusing(() => planLogin({ home, env }, account, model));
    const test = input.isTested ? testOf(await liveTest(change, { home, signal }), model) : null;
    if (test !== null && test.outcome !== 'answered') return { file: null, test };
    refusing(() => change.apply());
    return { file: change.file, test };
  }

  const providers = knownProviderNames.map((name): ModelProvider => {
    const known: KnownProvider = knownProviders[name];
    return { name, label: known.label, keyPage: known.keyPage ?? null, model: known.model ?? null };
  });

  return [
    bind(hubRoutes.listProviders, () => json(200, providers)),
    bind(hubRoutes.logIn, async (context) => json(200, await logIn(await context.json(ModelLoginInput)))),
    bind(hubRoutes.testModel, async (context) => {
      const { workspacePath } = await context.json(ModelTestInput);
      const workspace = registry.canonical(workspacePath);
      const loaded = refusing(() => loadConfig({ home, workspace, env }));
      const { liveTest } = await import('../../agent/index.ts');
      return json(200, testOf(await liveTest(loaded, { home, signal }), loaded.config.Model));
    }),
  ];
}
