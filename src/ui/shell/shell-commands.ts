import type { Signal } from '@preact/signals';
import { visible } from '../../lib/browser.ts';
import { dashboardPaths, hostedName, threadName } from '../../protocol/browser.ts';
import type { FleetList, FleetThreadList, FoundTexts, ReviewItem, SessionPage } from '../../protocol/index.ts';
import type { App } from '../app/app.ts';
import type { Command, Finder, Finding } from '../app/commands.ts';
import type { Page } from '../app/server.ts';
import { type Overlay, pageCommands } from './page-commands.ts';
import { views } from './views.ts';
import { pathWords, workspaceFindings } from './workspace-findings.ts';

const findingsPerFinder = 8;

/** Commands of every view. */
export function shellCommands(app: App, page: Page, overlay: Signal<Overlay>): readonly Command[] {
  return [
    ...page.views.map((view) => ({
      id: `go.${view}`,
      title: `Go to ${views[view].title.toLowerCase()}`,
      group: 'Views',
      keys: [views[view].keys],
      run: () => app.router.go({ view }),
    })),
    ...pageCommands(app, overlay),
  ];
}

/** Finders of every view: one index of workspaces, conversations, messages and traces; pull requests of a review backend. */
export function shellFinders(app: App, page: Page): readonly Finder[] {
  if (page.kind === 'review')
    return [{ id: 'pulls', group: 'Pull', find: (query, signal) => findPulls(app, query, signal) }];
  const ofHub: readonly Finder[] = [
    { id: 'workspaces', group: 'Workspace', find: (query, signal) => findWorkspaces(app, query, signal) },
    { id: 'threads', group: 'Conversation', find: (query, signal) => findThreads(app, query, signal) },
  ];
  if (page.kind === 'hub') return ofHub;
  return [
    { id: 'sessions', group: 'Trace', find: (query, signal) => findSessions(app, query, signal) },
    { id: 'texts', group: 'Message', find: (query, signal) => findTexts(app, query, signal) },
    ...(app.server.filesFrom === null ? [] : ofHub),
  ];
}

/** Messages and answers, each shown at its turn. */
async function findTexts(app: App, query: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const search = new URLSearchParams({ q: query, limit: String(findingsPerFinder) });
  const { texts } = await app.api.get<FoundTexts>(`${dashboardPaths.texts}?${search}`, signal);
  return texts.map(({ threadId, turnId, displayName, excerpt }, index) => ({
    id: `text:${threadId}:${turnId}:${index}`,
    title: visible(excerpt, { multiline: false }),
    ...(displayName !== undefined && { detail: visible(displayName, { multiline: false }) }),
    run: () => app.router.go({ view: 'chat', path: [threadId], query: { turn: turnId } }),
  }));
}

async function findSessions(app: App, query: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const search = new URLSearchParams({ q: query, limit: String(findingsPerFinder) });
  const { sessions } = await app.api.get<SessionPage>(`${dashboardPaths.sessions}?${search}`, signal);
  return sessions.map(({ sessionKey, displayName, firstInput }) => ({
    id: `session:${sessionKey}`,
    title: threadName({ displayName, firstInput }),
    detail: sessionKey,
    run: () => app.router.go({ view: 'sessions', path: [sessionKey] }),
  }));
}

async function findWorkspaces(app: App, query: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const search = new URLSearchParams({ q: pathWords(query), order: 'attention' });
  const { appServers } = await app.hub.get<FleetList>(`/v1/fleet/appservers?${search}`, signal);
  return workspaceFindings(app, appServers, query);
}

/** Conversations of all workspaces by their names and the words of their messages. */
async function findThreads(app: App, query: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const search = new URLSearchParams({ q: query, limit: String(findingsPerFinder) });
  const { threads, workspaces } = await app.hub.get<FleetThreadList>(`/v1/fleet/threads?${search}`, signal);
  return threads.map(({ workspaceId, threadId, name, actionUrl, host }) => ({
    id: `thread:${host ?? ''}:${threadId}`,
    title: visible(threadName({ displayName: name ?? undefined }), { multiline: false }),
    detail: hostedName(
      host,
      workspaces.find((each) => each.workspaceId === workspaceId && each.host === host)?.displayName ?? '',
    ),
    run: () => location.assign(actionUrl),
  }));
}

async function findPulls(app: App, query: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const search = new URLSearchParams({ q: query, limit: String(findingsPerFinder) });
  const { rows } = await app.api.get<{ readonly rows: readonly ReviewItem[] }>(`/api/v1/items?${search}`, signal);
  return rows.map(({ itemId, title, number, repositoryKey }) => ({
    id: `pull:${itemId}`,
    title,
    detail: `${repositoryKey.replace(/^[^/]*\//, '')}#${number}`,
    run: () => app.router.go({ view: 'queue', path: [itemId] }),
  }));
}
