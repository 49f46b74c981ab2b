import * as v from 'valibot';
import type { AppClient } from './app-client.ts';
import { AppQuestionError } from './errors.ts';

const Permissions = v.record(v.string(), v.string());
const AppShape = v.object({
  id: v.number(),
  slug: v.optional(v.string(), ''),
  name: v.string(),
  html_url: v.string(),
  permissions: Permissions,
  events: v.array(v.string()),
});
const HookShape = v.object({
  url: v.nullish(v.string()),
  content_type: v.nullish(v.string()),
  insecure_ssl: v.nullish(v.union([v.string(), v.number()])),
  secret: v.nullish(v.string()),
});
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
  permissions: v.optional(Permissions, {}),
  suspended_at: v.nullish(v.string()),
});

/** The App as its owner registered it. */
export interface AppFacts {
  readonly id: number;
  readonly name: string;
  readonly url: string;
  readonly permissions: Readonly<Record<string, string>>;
  readonly events: readonly string[];
  /** Ours against GitHub's clock, milliseconds; null when GitHub did not say. */
  readonly clockSkewMs: number | null;
}

/** @throws AppQuestionError */
export async function readApp(client: AppClient): Promise<AppFacts> {
  const { data, clockSkewMs } = await client.get('/app', AppShape);
  const { id, name, html_url, permissions, events } = data;
  return { id, name, url: html_url, permissions, events, clockSkewMs };
}

/** Where GitHub delivers to. */
export interface HookFacts {
  readonly url: string;
  readonly contentType: string;
  readonly verifiesTls: boolean;
  readonly hasSecret: boolean;
}

/** @returns null: the App has no webhook @throws AppQuestionError */
export async function readHook(client: AppClient): Promise<HookFacts | null> {
  const found = await orNull(client.get('/app/hook/config', HookShape));
  if (found === null) return null;
  const { url, content_type, insecure_ssl, secret } = found.data;
  return {
    url: url ?? '',
    contentType: content_type ?? 'form',
    verifiesTls: String(insecure_ssl ?? '0') === '0',
    hasSecret: Boolean(secret),
  };
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
