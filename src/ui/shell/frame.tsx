import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { visible } from '../../lib/browser.ts';
import { hostedName } from '../../protocol/browser.ts';
import type { App } from '../app/app.ts';
import type { Renewal } from '../app/renewal.ts';
import { href } from '../app/router.ts';
import type { Page, ViewName } from '../app/server.ts';
import { lastName } from '../parts/format.ts';
import { Glyph } from '../parts/glyphs.tsx';
import { Banner } from '../parts/state-banner.tsx';
import { usePart } from '../parts/use-part.ts';
import type { Tray as TrayView } from '../views/inbox/tray.tsx';
import type { Rail as RailView } from '../views/overview/rail.tsx';
import { Gate } from './gate.tsx';
import { Header } from './header.tsx';
import { KeySheet } from './key-sheet.tsx';
import { useKeys } from './keys.ts';
import { Outlet } from './outlet.tsx';
import type { Overlay } from './page-commands.ts';
import { Palette } from './palette.tsx';
import { shellCommands, shellFinders } from './shell-commands.ts';
import { Toasts } from './toasts.tsx';
import { listedViews, views } from './views.ts';
import { useWaiting } from './waiting.ts';

/**
 * Frame around every view: navigation and the state of the connection. The view is inside the only `<main>` and adds
 * no further `<main>`.
 */
export function Frame({ app }: { readonly app: App }) {
  const page = app.page.value;
  if (app.isRefused.value || app.entry.value === 'foreign' || !page) return <Gate app={app} />;
  return <Inside app={app} page={page} />;
}

function Inside({ app, page }: { readonly app: App; readonly page: Page }) {
  const overlay = useSignal<Overlay>('none');
  const { view } = app.router.route.value;
  useShell(app, page, overlay);
  const waiting = useWaiting(app, page);
  useTitle(app, page, waiting.all.value);
  const hasHub = app.server.kind === 'hub' || app.server.filesFrom !== null;
  const Rail = usePart(hasHub, fetchRail)?.Rail;
  const Tray = usePart(hasHub && waiting.all.value > 0, fetchTray)?.Tray;
  const main = useFocusOnArrival(view);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to {views[view].title}
      </button>
      <Header app={app} page={page} overlay={overlay} />
      <div class="news">{app.renewal.value && <Renewed {...app.renewal.value} />}</div>
      {hasHub && <div class="spaces">{Rail && <Rail app={app} waiting={waiting.all.value} />}</div>}
      <nav class="rail" aria-label="Views">
        {listedViews(page)
          .filter((name) => !Rail || !inRail.has(name))
          .map((name) => (
            <a
              key={name}
              href={href({ view: name })}
              aria-current={view === name ? 'page' : undefined}
              aria-label={
                name === waiting.view && waiting.count.value > 0 ? waitingWords(name, waiting.count.value) : undefined
              }
              title={`${views[name].title} (${views[name].keys})`}
            >
              <Glyph name={name} />
              <span class="cut">{views[name].title}</span>
              {name === waiting.view && waiting.count.value > 0 && (
                <span class="badge" data-count={waiting.count.value} />
              )}
            </a>
          ))}
      </nav>
      <main class="outlet" ref={main} tabIndex={-1} aria-label={views[view].title}>
        <Outlet key={view} app={app} view={view} isThere={page.views.includes(view)} />
      </main>
      {Tray && !inRail.has(view) && <Tray app={app} />}
      {overlay.value === 'palette' && <Palette app={app} onClose={() => closeOverlay(overlay, 'palette')} />}
      {overlay.value === 'keys' && <KeySheet app={app} onClose={() => closeOverlay(overlay, 'keys')} />}
      <Toasts app={app} />
    </div>
  );
}

/** Views that the rail of workspaces leads to. */
const inRail: ReadonlySet<ViewName> = new Set(['now', 'inbox']);

const fetchRail = (): Promise<{ readonly Rail: typeof RailView }> => import('../views/overview/rail.tsx');
const fetchTray = (): Promise<{ readonly Tray: typeof TrayView }> => import('../views/inbox/tray.tsx');

/** `Inbox, 2 waiting`. */
const waitingWords = (name: ViewName, count: number): string => `${views[name].title}, ${count} waiting`;

/** Shown when another version serves this page. Drafts are stored, and restored after the reload. */
function Renewed({ from, to }: Renewal) {
  const text = `Version ${to} serves this page now; this tab still runs ${from}. Your draft stays.`;
  return (
    <Banner tone="warn">
      <p>{visible(text, { multiline: false })}</p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </Banner>
  );
}

/** Closes an overlay, unless another one has replaced it. */
function closeOverlay(overlay: Signal<Overlay>, which: Overlay): void {
  if (overlay.peek() === which) overlay.value = 'none';
}

/** Global keys and commands, and a connection that shows the state of the server in every view. */
function useShell(app: App, page: Page, overlay: Signal<Overlay>): void {
  useKeys(app);
  useEffect(() => app.commands.register(shellCommands(app, page, overlay)), [app, page, overlay]);
  useEffect(() => {
    const unregister = shellFinders(app, page).map((finder) => app.commands.provide(finder));
    return () => {
      for (const each of unregister) each();
    };
  }, [app, page]);
  useEffect(() => app.live.listen('events', { onEvents: () => {} }), [app]);
}

/** `(1) fugue · Traces · demo · Oratorio`: waiting requests, then the most particular first, because tabs are narrow. */
function useTitle(app: App, page: Page, waiting: number): void {
  const { view } = app.router.route.value;
  const subject = app.subject.value;
  // Before the effects of a view, which may be drawn in the same frame and name its subject.
  useLayoutEffect(() => {
    app.subject.value = null;
  }, [view]);
  useEffect(() => {
    const { name, host } = app.server;
    const where = page.workspacePath === undefined ? name : hostedName(host, lastName(page.workspacePath));
    const calls = waiting > 0 ? `(${waiting}) ` : '';
    document.title =
      calls + [subject, views[view].title, where, 'Oratorio'].filter((part) => part !== null).join(' · ');
  }, [view, subject, page, waiting]);
}

/** Moves the focus into a newly opened view, for keyboard and screen reader; not when the page opens. */
function useFocusOnArrival(view: string) {
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  // At once: a key pressed in the view may move the focus on.
  useLayoutEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else main.current?.focus({ preventScroll: true });
  }, [view]);
  return main;
}
