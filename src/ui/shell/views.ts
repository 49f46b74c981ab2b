import type { ComponentType } from 'preact';
import type { App } from '../app/app.ts';
import type { Page, ViewName } from '../app/server.ts';

interface ViewModule {
  readonly default: ComponentType<{ readonly app: App }>;
}

/** The views of the page: each is fetched when it is first opened. */
export const views: Readonly<
  Record<ViewName, { readonly title: string; readonly keys: string; readonly load: () => Promise<ViewModule> }>
> = {
  now: { title: 'Now', keys: 'g n', load: () => import('../views/now/index.tsx') },
  overview: { title: 'Overview', keys: 'g o', load: () => import('../views/overview/index.tsx') },
  chat: { title: 'Conversations', keys: 'g c', load: () => import('../views/chat/index.tsx') },
  sessions: { title: 'Traces', keys: 'g s', load: () => import('../views/sessions/index.tsx') },
  actors: { title: 'Actors', keys: 'g a', load: () => import('../views/actors/index.tsx') },
  automations: { title: 'Automations', keys: 'g t', load: () => import('../views/automations/index.tsx') },
  settings: { title: 'Settings', keys: 'g ,', load: () => import('../views/settings/index.tsx') },
  events: { title: 'Events', keys: 'g e', load: () => import('../views/events/index.tsx') },
  inbox: { title: 'Inbox', keys: 'g i', load: () => import('../views/inbox/index.tsx') },
  threads: { title: 'Conversations', keys: 'g h', load: () => import('../views/threads/index.tsx') },
  queue: { title: 'Queue', keys: 'g q', load: () => import('../views/review-queue/index.tsx') },
  deliveries: { title: 'Deliveries', keys: 'g d', load: () => import('../views/review-deliveries/index.tsx') },
  sources: { title: 'Sources', keys: 'g r', load: () => import('../views/review-sources/index.tsx') },
  logs: { title: 'Logs', keys: 'g l', load: () => import('../views/logs/index.tsx') },
};

/** Views with a place in the navigation. Where conversations are listed, each leads to its trace. */
export const listedViews = ({ views }: Page): readonly ViewName[] =>
  views.filter((view) => view !== 'sessions' || !views.includes('chat'));
