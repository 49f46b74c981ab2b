import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { messageOf } from '../../lib/browser.ts';
import { dashboardPaths } from '../../protocol/browser.ts';
import { type Api, ApiError, createApi } from './api.ts';
import { type Commands, createCommands } from './commands.ts';
import { handOver } from './handover.ts';
import { createLive, type Live } from './live.ts';
import { followNotices } from './opened-notice.ts';
import { createPreferences, type Preferences } from './preferences.ts';
import { createTrust, isForeign, type Trust } from './proof.ts';
import { type Renewal, watchRenewal } from './renewal.ts';
import { createRouter, type Router } from './router.ts';
import { hubStreams, type Page, type Server, serverOf } from './server.ts';
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
  /** Requests to the server of the page's files: on the page of a workspace, to its Hub. */
  readonly hub: Api;
  /** Streams of that server. */
  readonly hubLive: Live;
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

const preferences = createPreferences();

/** @param ended aborts when the page is closed */
export function createApp(ended: AbortSignal): App {
  const server = serverOf(document);
  const now = signal(Date.now());
  const clock = setInterval(() => {
    now.value = Date.now();
  }, 1000);
  // Takes the token out of the address that the router reads.
  const access = new Access(server, ended);
  const router = createRouter(server.firstView);
  ended.addEventListener('abort', () => {
    clearInterval(clock);
    router.close();
  });
  const { api, files } = access;
  const live = createLive({ paths: server.streams, token: access.provenToken, onRefused: access.refuse });
  const renewal = watchRenewal(
    live.connections.events,
    () => access.opened,
    async () => {
      if (files === null || server.filesFrom === null) return (await server.readPage(api)).version;
      // The agent server of the workspace, or the reader of one that is down, may serve now.
      access.load();
      return (await files.get<Page>(server.filesFrom)).version;
    },
  );
  access.load();
  if (server.kind === 'hub') followNotices(ended);
  // The pages of the Hub and of its workspaces are opened by the same token.
  if (server.role === 'hub') access.takeOver();
  const { page, isRefused, entry, trouble, isLoggedIn } = access;
  const hubLive =
    files === null ? live : createLive({ paths: hubStreams, token: access.provenToken, onRefused: access.refuse });
  return {
    ...{ hub: files ?? api, hubLive },
    ...{ server, page, isRefused, entry, trouble, api, renewal, live, now, isLoggedIn, ...createToasts() },
    token: access.provenToken,
    router,
    commands: createCommands(),
    preferences,
    subject: signal<string | null>(null),
    enter: (token) => access.use(token),
    leave: () => access.leave(),
    logIn: (username, password) => access.logIn(username, password),
  };
}

/** Access of this tab to the server: its token, the proof of the server, and the page info as the first request. */
class Access {
  readonly page = signal<Page | null>(null);
  readonly isRefused = signal(false);
  readonly entry = signal<ConnectionState>('connecting');
  readonly trouble = signal<string | null>(null);
  readonly isLoggedIn: Signal<boolean>;
  readonly api: Api;
  /** Requests to the server of the page's files; null: it is the server of `api`. */
  readonly files: Api | null;
  /** Version of the page's files when the page was opened. */
  opened: string | undefined;
  readonly #server: Server;
  readonly #ended: AbortSignal;
  readonly #token = signal(takeToken());
  readonly #trust: Trust;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(server: Server, ended: AbortSignal) {
    this.#server = server;
    this.#ended = ended;
    this.isLoggedIn = signal(this.#token.peek()?.startsWith(loginMark) ?? false);
    this.#trust = createTrust({
      role: server.role,
      held: () => plain(this.#token.peek()),
      onRenewed: (renewed) => this.#renew(renewed),
      onForeign: (error) => {
        this.trouble.value = error.message;
        if (this.entry.peek() === 'foreign') return;
        this.entry.value = 'foreign';
        this.#loadSoon();
      },
    });
    this.api = createApi(this.provenToken, this.refuse, server.base);
    this.files = server.filesFrom === null ? null : createApi(this.provenToken, this.refuse, '');
  }

  /** Keeps the token after a 401 from a server that has not proved itself: the right server may come back. */
  readonly provenToken = (): Promise<string | null> =>
    this.#trust.token().catch((error: unknown) => {
      const kept = this.#token.peek();
      if (kept !== null && error instanceof ApiError && error.status === 401) {
        this.#shut();
        setTimeout(() => this.#knockAgain(kept), knockMs);
      }
      throw error;
    });

  readonly refuse = (): void => {
    if (this.#token.peek() !== null) forgetToken();
    this.#shut();
  };

  /** Fetches the page info until the server answers. */
  load(): void {
    this.#server.readPage(this.api).then(
      (info) => {
        this.page.value = info;
        if (this.files === null) this.opened ??= info.version;
        this.trouble.value = null;
        this.isRefused.value = false;
        this.entry.value = 'open';
      },
      (error: unknown) => {
        const status = error instanceof ApiError ? error.status : 0;
        // The gate explains a 401 better than the server's message does.
        this.trouble.value = status === 401 ? null : messageOf(error);
        if (status === 401 || status === 403) return this.refuse();
        this.entry.value = isForeign(error) ? 'foreign' : 'unreachable';
        this.#loadSoon();
      },
    );
  }

  use(given: string): void {
    keepToken(given);
    this.#token.value = given;
    this.isLoggedIn.value = given.startsWith(loginMark);
    this.entry.value = 'connecting';
    this.load();
  }

  /** Asks other tabs for the token of the Hub after a refusal, and gives it to tabs that ask. */
  takeOver(): void {
    const ask = handOver({
      name: 'hub',
      proven: this.provenToken,
      lacksToken: () => this.#token.peek() === null,
      onToken: (token) => this.use(token),
      ended: this.#ended,
    });
    // Once, and after the refusal: an answer that came before it would be forgotten with it.
    const stopWaiting = this.isRefused.subscribe((refused) => {
      if (!refused) return;
      queueMicrotask(() => stopWaiting());
      setTimeout(ask);
    });
  }

  leave(): void {
    if (this.isLoggedIn.peek()) this.api.send('POST', dashboardPaths.logout).catch(() => {});
    this.refuse();
  }

  async logIn(username: string, password: string): Promise<void> {
    const result = await this.api.send<{ token: string }>('POST', dashboardPaths.login, { username, password });
    this.use(`${loginMark}${result.token}`);
  }

  /** Shows no view, and sends requests without a token. */
  #shut(): void {
    this.#token.value = null;
    this.isRefused.value = true;
    this.entry.value = 'refused';
  }

  #renew(renewed: string): void {
    keepToken(renewed);
    this.#token.value = renewed;
  }

  #knockAgain(kept: string): void {
    if (this.#token.peek() !== null || !this.isRefused.peek() || this.#ended.aborted) return;
    createTrust({
      role: this.#server.role,
      held: () => plain(kept),
      onRenewed: (renewed) => this.#renew(renewed),
      onForeign: () => {},
    })
      .token()
      .then(
        (proven) => this.use(kept.startsWith(loginMark) ? kept : (proven ?? kept)),
        () => setTimeout(() => this.#knockAgain(kept), knockMs),
      );
  }

  #loadSoon(): void {
    clearTimeout(this.#timer);
    if (this.#ended.aborted) return;
    this.#timer = setTimeout(() => this.load(), retryMs);
  }
}

export function createToasts(): Pick<App, 'toasts' | 'toast'> {
  const toasts = signal<readonly Toast[]>([]);
  const drop = (toast: Toast) => {
    toasts.value = toasts.peek().filter((each) => each !== toast);
  };
  return {
    toasts,
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
  };
}

/** Prefix of a token from a log-in in the storage of this tab. */
const loginMark = 'login:';
const plain = (token: string | null): string | null => token?.replace(loginMark, '') ?? null;
