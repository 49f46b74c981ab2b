import { signal } from '@preact/signals';
import { createApi } from '../app/api.ts';
import { type App, createToasts } from '../app/app.ts';
import { createCommands } from '../app/commands.ts';
import type { Live } from '../app/live.ts';
import { createPreferences } from '../app/preferences.ts';
import { createRouter } from '../app/router.ts';
import type { Page, Server } from '../app/server.ts';

const page: Page = { kind: 'inspector', version: '', views: ['actors'] };

/** The page belongs to an inspected program and has no Oratorio server. */
const server: Server = {
  kind: 'inspector',
  base: '',
  host: null,
  role: 'hub',
  name: 'Inspector',
  firstView: 'actors',
  readPage: async () => page,
  filesFrom: null,
  streams: { events: '', inspect: '' },
  machines: '',
  gate: { hint: '', command: '', whenSilent: '' },
};

/** Services that the inspector's page offers to the view of actors. */
export function createProgramApp(live: Live): App {
  const now = signal(Date.now());
  setInterval(() => {
    now.value = Date.now();
  }, 1_000);
  const token = async () => null;
  const api = createApi(token, () => {}, '');
  return {
    ...{ server, api, hub: api, live, hubLive: live, now, token, ...createToasts() },
    page: signal(page),
    isRefused: signal(false),
    entry: signal('open'),
    trouble: signal(null),
    renewal: signal(null),
    router: createRouter('actors'),
    commands: createCommands(),
    preferences: createPreferences(),
    subject: signal<string | null>(null),
    isLoggedIn: signal(false),
    enter() {},
    leave() {},
    async logIn() {},
  };
}
