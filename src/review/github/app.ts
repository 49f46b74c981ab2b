import {
  AppAnswer,
  appFactsOf,
  clockSkewMs,
  HookAnswer,
  type HookFacts,
  hookFactsOf,
  missingEvents,
  missingPermissions,
  type PrivateKey,
  type AppFacts as RegisteredApp,
  readPrivateKey,
  usablePrivateKey,
} from '../../github/index.ts';
import { type Answer, type GitHubClient, parseAnswer } from './client.ts';
import { SourceError, toSourceError } from './errors.ts';
import { asApp } from './installations.ts';

/** Facts of the App for the diagnostics. */
export interface AppFacts extends RegisteredApp {
  readonly missingPermissions: readonly string[];
  /** Without `issue_comment` there are no commands; without `pull_request`, only polls find new heads. */
  readonly missingEvents: readonly string[];
  /** Difference of our clock from GitHub's, in milliseconds: positive when ours is fast. Exact to a second. */
  readonly clockSkewMs: number;
}

/** @throws SourceError appCredentialsInvalid, and any error of the request */
export async function readApp(client: GitHubClient): Promise<AppFacts> {
  const { data, headers } = await asTheApp(client.read('GET /app'));
  const facts = appFactsOf(parseAnswer(AppAnswer, data, 'the App'));
  return {
    ...facts,
    missingPermissions: missingPermissions(facts.permissions, true),
    missingEvents: missingEvents(facts.events),
    clockSkewMs: clockSkewMs(headers['date']) ?? 0,
  };
}

/** @throws SourceError */
export async function readHook(client: GitHubClient): Promise<HookFacts> {
  const { data } = await asTheApp(client.read('GET /app/hook/config'));
  return hookFactsOf(parseAnswer(HookAnswer, data, 'the webhook'));
}

const asTheApp = (answer: Promise<Answer>): Promise<Answer> =>
  answer.catch((error: unknown) => {
    throw asApp(error);
  });

interface PrivateKeySettings {
  readonly PrivateKey: string;
  readonly PrivateKeyPath: string;
}

/**
 * Loads the key of the App from the setting itself, or else from its file. In an environment variable `\n` may stand for line ends. Each
 * call reads the file, so that a key can be changed.
 * @throws SourceError privateKeyMissing, privateKeyInvalid, privateKeyTooShort; never with a part of the key
 */
export function loadPrivateKey({ PrivateKey, PrivateKeyPath }: PrivateKeySettings): PrivateKey {
  try {
    if (PrivateKey.trim() !== '') {
      return { pem: usablePrivateKey(PrivateKey.replaceAll('\\n', '\n'), 'GitHub.PrivateKey') };
    }
    if (PrivateKeyPath !== '') return readPrivateKey(PrivateKeyPath);
  } catch (error) {
    throw toSourceError(error);
  }
  throw new SourceError('privateKeyMissing', 'Set GitHub.PrivateKeyPath or GitHub.PrivateKey');
}
