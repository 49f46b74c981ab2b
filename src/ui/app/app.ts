import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { messageOf } from '../../lib/browser.ts';
import { dashboardPaths } from '../../protocol/browser.ts';
import { type Api, ApiError, createApi } from './api.ts';
import { type Commands, createCommands } from './commands.ts';
import { handOver } from './handover.ts';
import { createLive, type Live } from './live.ts';
import { followNotices } from './opened-notice.ts';
import { createPreferences, type Preferences } from './preferences.ts';
import { createTrust, isForeign } from './proof.ts';
import { type Renewal, watchRenewal } from './renewal.ts';
import { createRouter, type Router } from './router.ts';
import { type Page, type Server, serverOf } from './server.ts';
import { forgetToken, keepToken, takeToken } from './token.ts';

/** Notice at the foot of the page; with `undo`, the user can undo the action for `ms` milliseconds. */
export interface Toast {
  readonly text: string;
  readonly tone?: 'neutral' | 'danger';
  readonly undo?: () => void;
  readonly ms?: number;
}

/** State of the connection to the server. `foreign`: another program serves the address, and gets no token. */
export type ConnectionState = 'connecting' | 'open' | 'refused' | 'unreachable' | 'foreign';

/** Services of the page for its views. One per page. */
export interface App {
  /** The server that the page belongs to. */
  readonly server: Server;
  readonly page: ReadonlySignal<Page | null>;
  /** The server does not accept our token, or we have none: the gate is shown. */
  readonly isRefused: ReadonlySignal<boolean>;
  readonly entry: ReadonlySignal<ConnectionState>;
  /** Current error of fetching the page info, in the server's words; null without one. */
  readonly trouble: ReadonlySignal<string | null>;
  readonly api: Api;
  /** The server was replaced by another version since this page was opened. */
  readonly renewal: ReadonlySignal<Renewal | null>;
  /** Resolves with the token of this tab when the server has proved itself, null without one. Rejects with `ApiError`. */
  readonly token: () => Promise<string | null>;
  readonly live: Live;
  readonly router: Router;
  readonly commands: Commands;
  readonly preferences: Preferences;
  /** Subject of the view, for the title of the page: the name of a session. Emptied when the view changes. */
  readonly subject: Signal<string | null>;
  /** Current time in milliseconds since the epoch, updated each second. */
  readonly now: ReadonlySignal<number>;
  readonly toasts: ReadonlySignal<readonly Toast[]>;
  /** Shows a notice. Returns a function that removes it. */
  toast(toast: Toast): () => void;
  /** Opens the page with a token that the user typed. */
  enter(token: string): void;
  /** Forgets the token of this tab; a token from a log-in also ends at the server. */
  leave(): void;
  /** Whether the token came from a log-in, so that the user can log out. */
  readonly isLoggedIn: ReadonlySignal<boolean>;
  /** Logs in at an agent server. Rejects with `ApiError`. */
  logIn(username: string, password: string): Promise<void>;
}

const retryMs = 1_000;
/** Pause between two tries of a token that the server did not know. */
const knockMs = 5_000;
const toastMs = 6_000;
const maxToasts = 4;

export function createApp(): App {
  const token = signal(takeToken());
  const isRefused = signal(false);
  const entry = signal<ConnectionState>('connecting');
  const trouble = signal<string | null>(null);
  const page = signal<Page | null>(null);
  const isLoggedIn = signal(token.peek()?.startsWith(loginMark) ?? false);
  const now = signal(Date.now());
  const toasts = signal<readonly Toast[]>([]);
  const server = serverOf(document);
  /** Shows no view, and sends requests without a token. */
  const shut = () => {
    token.value = null;
    isRefused.value = true;
    entry.value = 'refused';
  };
  const refuse = () => {
    if (token.peek() !== null) forgetToken();
    shut();
  };
  const renew = (renewed: string) => {
    keepToken(renewed);
    token.value = renewed;
  };
  const trust = createTrust({
    role: server.role,
    held: () => plain(token.peek()),
    onRenewed: renew,
    onForeign(error) {
      trouble.value = error.message;
      if (entry.peek() === 'foreign') return;
      entry.value = 'foreign';
      loadSoon();
    },
  });
  /** Keeps the token after a 401 from a server that has not proved itself: the right server may come back. */
  const provenToken = () =>
    trust.token().catch((error: unknown) => {
      const kept = token.peek();
      if (kept !== null && error instanceof ApiError && error.status === 401) {
        shut();
        setTimeout(knockAgain, knockMs, kept);
      }
      throw error;
    });
  const knockAgain = (kept: string) => {
    if (token.peek() !== null || !isRefused.peek()) return;
    createTrust({ role: server.role, held: () => plain(kept), onRenewed: renew, onForeign: () => {} })
      .token()
      .then(
        (proven) => use(kept.startsWith(loginMark) ? kept : (proven ?? kept)),
        () => setTimeout(knockAgain, knockMs, kept),
      );
  };
  const api = createApi(provenToken, refuse, server.base);
  const live = createLive({ paths: server.streams, token: provenToken, onRefused: refuse });
  const files = server.filesFrom === null ? null : createApi(provenToken, refuse, '');
  let opened: string | undefined;
  const renewal = watchRenewal(
    live.connections.events,
    () => opened,
    async () => {
      const info = files && server.filesFrom !== null ? files.get<Page>(server.filesFrom) : server.readPage(api);
      return (await info).version;
    },
  );
  setInterval(() => {
    now.value = Date.now();
  }, 1000);

  let timer: ReturnType<typeof setTimeout> | undefined;
  const loadSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(load, retryMs);
  };
  const load = () => {
    server.readPage(api).then(
      (info) => {
        page.value = info;
        if (files === null) opened ??= info.version;
        trouble.value = null;
        isRefused.value = false;
        entry.value = 'open';
      },
      (error: unknown) => {
        const status = error instanceof ApiError ? error.status : 0;
        // The gate explains a 401 better than the server's message does.
        trouble.value = status === 401 ? null : messageOf(error);
        if (status === 401 || status === 403) return refuse();
        entry.value = isForeign(error) ? 'foreign' : 'unreachable';
        loadSoon();
      },
    );
  };
  load();

  const use = (given: string) => {
    keepToken(given);
    token.value = given;
    isLoggedIn.value = given.startsWith(loginMark);
    entry.value = 'connecting';
    load();
  };
  if (server.kind === 'hub') followNotices();
  // The pages of the Hub and of its workspaces are opened by the same token.
  if (server.role === 'hub') {
    const lacksToken = () => token.peek() === null;
    const ask = handOver({ name: 'hub', proven: provenToken, lacksToken, onToken: use });
    // Once, and after the refusal: an answer that came before it would be forgotten with it.
    const stopWaiting = isRefused.subscribe((refused) => {
      if (!refused) return;
      queueMicrotask(() => stopWaiting());
      setTimeout(ask);
    });
  }
  const drop = (toast: Toast) => {
    toasts.value = toasts.peek().filter((each) => each !== toast);
  };
  return {
    server,
    page,
    isRefused,
    entry,
    trouble,
    api,
    renewal,
    token: provenToken,
    live,
    router: createRouter(server.firstView),
    commands: createCommands(),
    preferences: createPreferences(),
    subject: signal<string | null>(null),
    now,
    toasts,
    isLoggedIn,
    toast(given) {
      const { undo } = given;
      const undoAndClose = () => {
        drop(toast);
        undo?.();
      };
      const toast: Toast = undo ? { ...given, undo: undoAndClose } : given;
      toasts.value = [...toasts.peek(), toast].slice(-maxToasts);
      setTimeout(() => drop(toast), toast.ms ?? toastMs);
      return () => drop(toast);
    },
    enter: use,
    leave() {
      if (isLoggedIn.peek()) api.send('POST', dashboardPaths.logout).catch(() => {});
      refuse();
    },
    async logIn(username, password) {
      const result = await api.send<{ token: string }>('POST', dashboardPaths.login, { username, password });
      use(`${loginMark}${result.token}`);
    },
  };
}

/** Prefix of a token from a log-in in the storage of this tab. */
const loginMark = 'login:';
const plain = (token: string | null): string | null => token?.replace(loginMark, '') ?? null;
