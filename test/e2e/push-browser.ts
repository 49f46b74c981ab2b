/** Parts of Web Push that a browser without a push service and without a desktop lacks, for a page and its worker. */
import type { BrowserContext, Page, Worker } from 'playwright-core';

/** Answers of the person and of the push service, set by a test. */
interface Answers {
  permission: NotificationPermission;
  /** Why the push service refuses; empty: it subscribes. */
  refusal: string;
}

/** Subscribes at an address that no test asks. */
export async function standInForPushService(context: BrowserContext): Promise<void> {
  await context.addInitScript(() => {
    const answers: Answers = { permission: 'default', refusal: '' };
    Object.assign(globalThis, { answers });
    Object.defineProperty(Notification, 'permission', { get: () => answers.permission });
    Notification.requestPermission = async () => answers.permission;
    let subscription: unknown = null;
    PushManager.prototype.getSubscription = async () => subscription as PushSubscription | null;
    PushManager.prototype.subscribe = async (options) => {
      if (answers.refusal !== '') throw new DOMException(answers.refusal, 'AbortError');
      const text = String(options?.applicationServerKey).replaceAll('-', '+').replaceAll('_', '/');
      const applicationServerKey = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
      const keys = { p256dh: options?.applicationServerKey, auth: 'A'.repeat(22) };
      subscription = {
        endpoint: 'https://8.8.8.8/send/1',
        options: { applicationServerKey },
        toJSON: () => ({ keys }),
        unsubscribe: async () => {
          subscription = null;
          return true;
        },
      };
      return subscription as PushSubscription;
    };
  });
}

export const answer = (page: Page, answers: Partial<Answers>): Promise<unknown> =>
  page.evaluate((given) => Object.assign((globalThis as unknown as { answers: Answers }).answers, given), answers);

interface Shown {
  readonly title: string;
  readonly options: { readonly body: string; readonly tag: string; readonly data: string };
}

/** Delivers a message as the browser does when its push service sends one, and returns the notice that the worker shows. */
export async function deliver(page: Page, worker: Worker, message: string): Promise<Shown> {
  await worker.evaluate(() => {
    const scope = globalThis as unknown as { registration: ServiceWorkerRegistration; shown: Promise<Shown> };
    scope.shown = new Promise((resolve) => {
      scope.registration.showNotification = async (title, options) => resolve({ title, options } as Shown);
    });
  });
  const session = await page.context().newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [first] }) => {
      if (first) resolve(first.registrationId);
    });
  });
  await session.send('ServiceWorker.enable');
  const origin = new URL(page.url()).origin;
  await session.send('ServiceWorker.deliverPushMessage', { origin, registrationId: await registered, data: message });
  const shown = await worker.evaluate(() => (globalThis as unknown as { shown: Promise<Shown> }).shown);
  await session.detach();
  return shown;
}

/** The person opens a notice. A browser lets only a real click focus a page, so it refuses that here. */
export const open = (worker: Worker, data: string): Promise<void> =>
  worker.evaluate((data) => {
    const notice = { data, close: () => {} };
    const waitUntil = (done: Promise<unknown>) => done.catch(() => {});
    dispatchEvent(Object.assign(new Event('notificationclick'), { notification: notice, waitUntil }));
  }, data);
