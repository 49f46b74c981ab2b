import { missingEvents, missingPermissions, neededEvents } from '../../github/index.ts';
import { DeployError } from '../errors.ts';
import { type AppClient, createAppClient } from './app-client.ts';
import { type AskedApp, readApp, readInstallation } from './app-facts.ts';
import { appKey } from './app-key.ts';
import { AppQuestionError } from './errors.ts';

export interface ProofOptions {
  readonly endpoint: string;
  readonly appId: string | number;
  /** PEM, as GitHub gave it out. */
  readonly privateKey: string;
  /** `owner/name`. */
  readonly repositories: readonly string[];
  /** Reviews are to be written back. */
  readonly isWriting: boolean;
  /** For each question. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Something that will keep reviews from working until it is changed at GitHub. */
export interface AppProblem {
  /** `owner/name`; null: of the App as a whole. */
  readonly repository: string | null;
  readonly message: string;
  readonly hint: string;
  /** Without it nothing works; otherwise less does. */
  readonly isFatal: boolean;
}

export type AppProof =
  | { readonly state: 'proven'; readonly app: AskedApp; readonly problems: readonly AppProblem[] }
  /** GitHub gave no answer: nothing is known of the App. */
  | { readonly state: 'unknown'; readonly reason: string };

/**
 * Proves that an App's id and key belong together, that the App has the permissions of reviews, and that it is installed for the
 * repositories. Only reads.
 * @throws DeployError credentialsRefused when GitHub refuses the pair, secretRefused when the key is invalid
 */
export async function proveApp(options: ProofOptions): Promise<AppProof> {
  const privateKey = appKey(options.privateKey, "The App's private key");
  const client = createAppClient({ ...options, privateKey });
  try {
    const app = await readApp(client);
    const ofRepositories = await oneByOne(options.repositories, (each) => installationProblems(client, each, options));
    return { state: 'proven', app, problems: [...appProblems(app, options), ...ofRepositories.flat()] };
  } catch (error) {
    if (!(error instanceof AppQuestionError)) throw error;
    if (error.code === 'credentialsRefused') throw new DeployError('credentialsRefused', error.message, error.hint);
    return { state: 'unknown', reason: error.message };
  }
}

function appProblems(app: AskedApp, { appId, isWriting }: ProofOptions): AppProblem[] {
  const permissions = missingPermissions(app.permissions, isWriting);
  const events = missingEvents(app.events);
  const ofApp = { repository: null };
  return [
    ...(/^\d+$/.test(String(appId)) && String(app.id) !== String(appId)
      ? [{ ...ofApp, message: `The key is of App ${app.id}.`, hint: 'Give the id of that App.', isFatal: true }]
      : []),
    ...(permissions.length === 0
      ? []
      : [
          {
            ...ofApp,
            message: `The App lacks permissions: ${permissions.join(', ')}.`,
            hint: `Grant them under ${app.url}, then accept them for the installation.`,
            isFatal: true,
          },
        ]),
    ...(events.length === 0
      ? []
      : [
          {
            ...ofApp,
            message: `The App does not subscribe to ${events.join(', ')}.`,
            hint: 'Tick these events on the page of the App.',
            isFatal: events.includes(neededEvents[0]),
          },
        ]),
  ];
}

async function installationProblems(
  client: AppClient,
  repository: string,
  { isWriting }: ProofOptions,
): Promise<AppProblem[]> {
  const found = await readInstallation(client, repository);
  const problem = (message: string, hint: string): AppProblem[] => [{ repository, message, hint, isFatal: true }];
  if (found === null) return problem(`The App is not installed for ${repository}.`, 'Install it for this repository.');
  if (found.isSuspended) return problem(`The installation for ${repository} is suspended.`, 'Unsuspend it.');
  const missing = missingPermissions(found.permissions, isWriting);
  if (missing.length === 0) return [];
  return problem(
    `The installation for ${repository} lacks permissions: ${missing.join(', ')}.`,
    'Accept the new permissions of the App for this installation.',
  );
}

/** One after the other: GitHub asks for that. */
async function oneByOne<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}
