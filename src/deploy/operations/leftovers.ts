import { existsSync, readFileSync } from 'node:fs';
import { openChange } from '../apply/index.ts';
import { parseEnv, readBackendConfig, type StackConfig } from '../files/index.ts';
import { layoutOf } from '../layout.ts';

/** Answers that an interrupted `server init` has written already; they are not requested again. */
export interface Leftovers {
  readonly repositories: readonly string[] | undefined;
  readonly model: { readonly endPoint: string; readonly name: string; readonly apiKey: string } | undefined;
  readonly github:
    | {
        readonly appId: string | undefined;
        readonly endpoint: string | null;
        readonly installations: readonly { readonly owner: string; readonly installationId: number }[];
        readonly privateKeyPath: string;
        readonly hasPrivateKey: boolean;
      }
    | undefined;
  readonly autoReview: boolean | undefined;
  readonly writes: boolean | undefined;
  /** Values of `.env`, secrets among them. */
  readonly env: ReadonlyMap<string, string>;
}

const textOf = (file: string): string | undefined => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);

/** Null where no `server init` has stopped half-way. @throws DeployError when a file of it was made unreadable since */
export function readLeftovers(directory: string): Leftovers | null {
  const layout = layoutOf(directory);
  if (openChange(layout)?.command !== 'init') return null;
  const env = parseEnv(textOf(layout.env) ?? '').values;
  const configText = textOf(layout.config);
  const config = configText === undefined ? undefined : readBackendConfig(configText);
  const name = env.get('ORATORIO_MODEL');
  return {
    env,
    model:
      name === undefined
        ? undefined
        : {
            name,
            endPoint: env.get('ORATORIO_MODEL_ENDPOINT') ?? '',
            apiKey: env.get('ORATORIO_MODEL_API_KEY') ?? '',
          },
    ...(config === undefined ? noConfig : ofConfig(config, existsSync(layout.privateKey))),
  };
}

const noConfig = { repositories: undefined, github: undefined, autoReview: undefined, writes: undefined };

function ofConfig(config: StackConfig, hasPrivateKey: boolean) {
  const { appId, endpoint, installations, privateKeyPath, repositories, writesEnabled } = config;
  return {
    repositories: repositories.map(({ repository }) => repository),
    github: {
      appId: appId ?? undefined,
      endpoint: endpoint === 'https://api.github.com' ? null : endpoint,
      installations: installations.map(({ owner, installationId }) => ({ owner, installationId })),
      privateKeyPath,
      hasPrivateKey,
    },
    autoReview: repositories.some(({ autoReview }) => autoReview),
    writes: writesEnabled,
  };
}
