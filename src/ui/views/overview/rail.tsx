import { useEffect } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import { hostedName } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { href, type To } from '../../app/router.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { openOnHub } from '../../shell/workspace-findings.ts';
import { nameOf, type Shown, workspacesOf } from './workspaces.ts';

/** Most tiles; the overview lists further workspaces. */
const maxTiles = 9;

/** Address of a view of the Hub, valid on the page of a workspace, too. */
const onHub = ({ server }: App, route: To): string => `${server.kind === 'hub' ? '' : '/'}${href(route)}`;

/** Tiles of the Hub's workspaces, on every page. */
export function Rail({ app, waiting }: { readonly app: App; readonly waiting: number }) {
  const store = workspacesOf(app);
  useEffect(() => store.start(), [store]);
  const all = store.all.value;
  const tiles = tilesOf(all);
  const { view } = app.router.route.value;
  const isHub = app.server.kind === 'hub';
  const here = hostedName(app.server.host, app.page.value?.workspacePath ?? '');
  const current = (isCurrent: boolean) => (isCurrent ? 'page' : undefined);
  const number = (store.list.value?.sums ?? []).reduce((sum, { workspaces }) => sum + workspaces, 0);
  const pages = tiles.map(({ record: { page } }) => page).join();
  useEffect(
    () =>
      app.commands.register(
        tiles.slice(0, maxTiles).map((workspace, index) => ({
          id: `workspace.${index + 1}`,
          title: `Go to workspace ${nameOf(workspace)}`,
          group: 'Workspaces',
          keys: [`g ${index + 1}`],
          run: () => location.assign(addressOf(app, workspace)),
        })),
      ),
    [app, pages, view],
  );
  return (
    <nav class="tiles" aria-label="Workspaces">
      <a
        href={onHub(app, { view: 'now' })}
        aria-label="Now"
        title="Now"
        aria-current={current(isHub && view === 'now')}
      >
        <Glyph name="now" />
      </a>
      <a
        href={onHub(app, { view: 'inbox' })}
        aria-label={waiting > 0 ? `Inbox, ${waiting} waiting` : 'Inbox'}
        title="Inbox"
        aria-current={current(isHub && view === 'inbox')}
      >
        <Glyph name="inbox" />
        {waiting > 0 && <span class="badge" data-count={waiting} />}
      </a>
      <hr />
      {tiles.map((workspace) => (
        <Tile
          key={workspace.path}
          workspace={workspace}
          address={addressOf(app, workspace)}
          isCurrent={!isHub && workspace.path === here}
        />
      ))}
      {number > tiles.length && (
        <a href={onHub(app, { view: 'overview' })} aria-label={`All ${number} workspaces`} title="All workspaces">
          <Glyph name="more" />
        </a>
      )}
      <button
        type="button"
        aria-label="Add a workspace"
        title="Add a workspace"
        onClick={() => openOnHub(app, { view: 'now', query: { add: 'workspace' } })}
      >
        <Glyph name="plus" />
      </button>
    </nav>
  );
}

/** Views that each workspace has, so that the current view stays when the workspace changes. */
const keptViews: ReadonlySet<string> = new Set(['overview', 'chat', 'sessions', 'automations', 'settings', 'logs']);

/** Page of a workspace in the current view; until the page is known, its actor on the Hub. */
function addressOf(app: App, { record: { page, host }, path }: Shown): string {
  const { view } = app.router.route.value;
  if (page === null) return onHub(app, host === null ? { view: 'actors', path: [path] } : { view: 'overview' });
  return app.server.kind !== 'hub' && keptViews.has(view) ? `${page}${href({ view })}` : page;
}

/** Workspaces with a tile, by name, so that a tile keeps its place. If there are too many, those with requests or problems come first. */
function tilesOf(all: readonly Shown[]): readonly Shown[] {
  return all
    .slice(0, maxTiles)
    .sort((a, b) => (nameOf(a) === nameOf(b) ? (a.path < b.path ? -1 : 1) : nameOf(a) < nameOf(b) ? -1 : 1));
}

interface TileProps {
  readonly workspace: Shown;
  readonly address: string;
  readonly isCurrent: boolean;
}

function Tile({ workspace, address, isCurrent }: TileProps) {
  const { look, word, record, path } = workspace;
  const { pendingApprovals: waiting, asOf, displayName } = record;
  const name = visible(nameOf(workspace), { multiline: false });
  return (
    <a
      href={address}
      class={asOf === null ? undefined : 'past'}
      aria-label={`${name}, ${word}${asOf === null ? '' : ', not connected'}${waiting > 0 ? `, ${waiting} waiting` : ''}`}
      title={`${name} · ${word}\n${path}`}
      aria-current={isCurrent ? 'page' : undefined}
    >
      <span class="initials" data-text={[...visible(displayName, { multiline: false })].slice(0, 2).join('')} />
      <Mark tone={look.tone} shape={look.shape} />
      {waiting > 0 && <span class="badge" data-count={waiting} />}
    </a>
  );
}
