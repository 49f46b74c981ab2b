/** An intake on a real store, and deliveries to put into it. */
import { createHmac, randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import * as v from 'valibot';
import { BackendSettings } from '../../../src/review/settings/index.ts';
import type { ReviewStore } from '../../../src/review/store/index.ts';
import { type WebhookAnswer, WebhookIntake } from '../../../src/review/webhook/index.ts';
import { quiet, sqliteSubject } from '../store/databases.ts';

export const secret = 'a secret of the tests';

export interface Given {
  readonly event?: string;
  readonly body: Uint8Array | string | object;
  readonly id?: string;
  readonly secret?: string;
  /** Headers in place of those of a proper delivery; undefined removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly address?: string;
}

export const bytesOf = (body: Given['body']): Uint8Array => {
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
};

export const signatureOf = (body: Uint8Array, key = secret): string =>
  `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;

/** Headers as GitHub sends them. */
export function headersOf({ event = 'push', body, id = randomUUID(), secret: key, headers }: Given) {
  return {
    'content-type': 'application/json',
    'x-github-event': event,
    'x-github-delivery': id,
    'x-hub-signature-256': signatureOf(bytesOf(body), key),
    ...headers,
  } as Record<string, string | undefined>;
}

export const settingsWith = (github: object = {}, rest: object = {}): BackendSettings =>
  v.parse(BackendSettings, {
    GitHub: { WebhookSecret: secret, Repositories: ['Codertocat/Hello-World', 'octo/hello'], ...github },
    AgentServer: {
      RepositoryWorkspaceRoutes: [
        { Project: 'github:github.com/Codertocat/Hello-World', WorkspacePath: '/w/one' },
        { Project: 'octo/hello', WorkspacePath: '/w/two' },
      ],
    },
    ...rest,
  });

export interface Scene {
  readonly store: ReviewStore;
  readonly intake: WebhookIntake;
  readonly deliver: (given: Given) => Promise<WebhookAnswer>;
  /** Everything that a delivery could have changed. */
  readonly state: () => Promise<unknown>;
  readonly sql: (text: string) => Promise<readonly Record<string, unknown>[]>;
}

export async function scene(
  t: Test,
  settings: BackendSettings | (() => BackendSettings) = settingsWith(),
): Promise<Scene> {
  const subject = sqliteSubject(t);
  const store = await subject.open();
  const current = typeof settings === 'function' ? settings : () => settings;
  const intake = new WebhookIntake({ settings: current, store, logger: quiet });
  t.teardown(() => intake.close());
  return {
    store,
    intake,
    deliver: (given) => deliverTo(intake, given),
    sql: (text) => subject.sql(text),
    state: async () => [
      await subject.sql('select count(*) as deliveries from deliveries'),
      await subject.sql('select count(*) as jobs from jobs'),
      await subject.sql('select count(*) as commands from commands'),
    ],
  };
}

export function deliverTo(intake: WebhookIntake, given: Given): Promise<WebhookAnswer> {
  const headers = headersOf(given);
  return intake.take({
    header: (name) => headers[name],
    remoteAddress: given.address ?? '192.0.2.1',
    bytes: async () => bytesOf(given.body),
  });
}

/** A comment on a pull request, as GitHub reports it. */
export const commentPayload = (body: string, change: object = {}, issue: object = { pull_request: {} }) => ({
  action: 'created',
  repository: { full_name: 'octo/hello', html_url: 'https://github.com/octo/hello' },
  issue: { number: 7, ...issue },
  comment: { id: 42, body, author_association: 'MEMBER', user: { login: 'alice', type: 'User' }, ...change },
  sender: { login: 'alice' },
});

/** A comment on lines of a pull request, as GitHub reports it. `in_reply_to_id` names the first comment of its thread. */
export const threadPayload = (body: string, change: object = {}) => {
  const { issue: _, ...rest } = commentPayload(body, change);
  return { ...rest, pull_request: { number: 7 } };
};

/** A review of a pull request with a text, as GitHub reports it. */
export const reviewPayload = (body: string | null, change: object = {}) => {
  const { comment, ...rest } = threadPayload(body ?? '', change);
  return { ...rest, action: 'submitted', review: { ...comment, body, state: 'commented' } };
};
