import { type Signal, useSignal } from '@preact/signals';
import { hostedName } from '../../protocol/browser.ts';
import type { App } from '../app/app.ts';
import type { Page } from '../app/server.ts';
import type { Connection } from '../app/stream.ts';
import { lastName, splitPath } from '../parts/format.ts';
import { Glyph } from '../parts/glyphs.tsx';
import { Logo } from '../parts/icons.tsx';
import { clockTime } from '../parts/time.ts';
import { modKey } from './keys.ts';
import type { Overlay } from './page-commands.ts';
import { PreferencesDialog } from './preferences-dialog.tsx';

/** Header of the page: its server or workspace, the state of the connection, search and preferences. */
export function Header({
  app,
  page,
  overlay,
}: {
  readonly app: App;
  readonly page: Page;
  readonly overlay: Signal<Overlay>;
}) {
  const preferencesAreOpen = useSignal(false);
  const { head } = splitPath(page.workspacePath ?? '');
  return (
    <header class="head">
      <Logo />
      <p class="where">
        {app.server.base !== '' && (
          <>
            <a href="/">Hub</a>{' '}
          </>
        )}
        <b>
          {page.workspacePath === undefined
            ? `Oratorio ${app.server.name}`
            : hostedName(app.server.host, lastName(page.workspacePath))}
        </b>
        <span class="quiet mono cut" title={page.workspacePath}>
          {head}
        </span>
      </p>
      <ConnectionLight app={app} />
      <button
        type="button"
        class="plain"
        aria-label={`Search and commands: ${modKey} K`}
        title={`Search and commands (${modKey} K)`}
        onClick={() => {
          overlay.value = 'palette';
        }}
      >
        <Glyph name="search" />
        <kbd class="wide">{modKey} K</kbd>
      </button>
      <button
        type="button"
        class="plain"
        aria-label="Appearance and keys"
        title="Appearance and keys"
        onClick={() => {
          preferencesAreOpen.value = true;
        }}
      >
        <Glyph name="look" />
      </button>
      <button
        type="button"
        class="plain wide"
        aria-label="Keyboard help"
        title="Keyboard help (?)"
        onClick={() => {
          overlay.value = 'keys';
        }}
      >
        ?
      </button>
      {preferencesAreOpen.value && (
        <PreferencesDialog
          app={app}
          onClose={() => {
            preferencesAreOpen.value = false;
          }}
        />
      )}
    </header>
  );
}

/** Severity of each state: the worst of the streams in use is shown. */
const gravity: readonly Connection['state'][] = ['absent', 'live', 'connecting', 'reconnecting', 'refused'];

/** State of the connection. It is read out when it changes, not while seconds are counted down. */
function ConnectionLight({ app }: { readonly app: App }) {
  const [worst] = app.live.listened.value
    .map((name) => app.live.connections[name].value)
    .sort((a, b) => gravity.indexOf(b.state) - gravity.indexOf(a.state));
  if (!worst || worst.state === 'absent') return <p class="connection" role="status" />;
  return (
    <>
      <p
        class={`connection ${worst.state}`}
        role="status"
        title={worst.state === 'reconnecting' ? worst.error : undefined}
      >
        <i aria-hidden="true" />
        {phrases[worst.state]}
      </p>
      {worst.state === 'reconnecting' && (
        <span class="quiet wide connection" title="Age of the data">
          {untilRetry(worst.retryAt, app.now.value)}
          {worst.since !== null && ` · data from ${clockTime(worst.since)}`}
        </span>
      )}
    </>
  );
}

const phrases: Readonly<Record<Connection['state'], string>> = {
  connecting: 'Connecting…',
  live: 'Live',
  reconnecting: 'Disconnected',
  refused: 'Refused',
  absent: '',
};

function untilRetry(retryAt: number, now: number): string {
  const seconds = Math.ceil((retryAt - now) / 1000);
  return seconds > 0 ? `reconnecting in ${seconds} s` : 'reconnecting…';
}
