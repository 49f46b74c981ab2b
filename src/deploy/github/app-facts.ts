import * as v from 'valibot';
import { AppAnswer, type AppFacts, appFactsOf, HookAnswer, type HookFacts, hookFactsOf } from '../../github/index.ts';
import type { AppClient } from './app-client.ts';
import { AppQuestionError } from './errors.ts';

const DeliveriesShape = v.array(
  v.object({
    guid: v.string(),
    event: v.string(),
    delivered_at: v.string(),
    status_code: v.number(),
  }),
);
const InstallationShape = v.object({
  id: v.number(),
  permissions: v.optional(v.record(v.string(), v.string()), {}),
  suspended_at: v.nullish(v.string()),
});

/** Facts of the App, and our clock against GitHub's in milliseconds; null when GitHub did not say. */
export type AskedApp = AppFacts & { readonly clockSkewMs: number | null };

/** @throws AppQuestionError */
export async function readApp(client: AppClient): Promise<AskedApp> {
  const { data, clockSkewMs } = await client.get('/app', AppAnswer);
  return { ...appFactsOf(data), clockSkewMs };
}

/** @returns null: the App has no webhook @throws AppQuestionError */
export async function readHook(client: AppClient): Promise<HookFacts | null> {
  const found = await orNull(client.get('/app/hook/config', HookAnswer));
  return found && hookFactsOf(found.data);
}

export interface DeliveryFacts {
  readonly event: string;
  /** ISO 8601. */
  readonly deliveredAt: string;
  /** 0: no connection was made. */
  readonly statusCode: number;
  readonly hasArrived: boolean;
  /** This attempt failed, and no other attempt of the same delivery that GitHub still lists arrived. */
  readonly isMissed: boolean;
}

/** The last deliveries, newest first. @returns null: the App has no webhook @throws AppQuestionError */
export async function readDeliveries(client: AppClient, most: number): Promise<readonly DeliveryFacts[] | null> {
  const found = await orNull(client.get('/app/hook/deliveries', DeliveriesShape, { per_page: most }));
  if (found === null) return null;
  const hasArrived = (code: number): boolean => code >= 200 && code < 300;
  const arrived = new Set(found.data.filter((each) => hasArrived(each.status_code)).map(({ guid }) => guid));
  return found.data.map(({ guid, event, delivered_at, status_code }) => ({
    event,
    deliveredAt: delivered_at,
    statusCode: status_code,
    hasArrived: hasArrived(status_code),
    isMissed: !arrived.has(guid),
  }));
}

export interface InstallationFacts {
  readonly id: number;
  readonly isSuspended: boolean;
  readonly permissions: Readonly<Record<string, string>>;
}

/** @returns null: the App is not installed for this repository @throws AppQuestionError */
export async function readInstallation(client: AppClient, repository: string): Promise<InstallationFacts | null> {
  const [owner = '', repo = ''] = repository.split('/');
  const found = await orNull(client.get('/repos/{owner}/{repo}/installation', InstallationShape, { owner, repo }));
  if (found === null) return null;
  const { id, permissions, suspended_at } = found.data;
  return { id, permissions, isSuspended: Boolean(suspended_at) };
}

const orNull = <T>(asked: Promise<T>): Promise<T | null> =>
  asked.catch((error: unknown) => {
    if (error instanceof AppQuestionError && error.code === 'notFound') return null;
    throw error;
  });
