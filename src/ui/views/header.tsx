import type { Store } from '../state/store.ts';
import { lookOf, type Tone } from '../state/tone.ts';
import { Logo } from './icons.tsx';

const toneWords: readonly (readonly [Tone, string])[] = [
  ['ok', 'up'],
  ['progress', 'changing'],
  ['warn', 'unhealthy'],
  ['danger', 'down'],
  ['neutral', 'at rest'],
];

export function Header({ store }: { readonly store: Store }) {
  const counts = new Map<Tone, number>();
  for (const actor of store.actors.value.byId.values()) {
    const { tone } = lookOf(actor);
    counts.set(tone, (counts.get(tone) ?? 0) + 1);
  }
  return (
    <header class="bar">
      <Logo />
      <h1>Oratorio</h1>
      <p class="counts">
        {toneWords.map(([tone, word]) =>
          counts.has(tone) ? (
            <span key={tone} class={tone}>
              <b>{counts.get(tone)}</b> {word}
            </span>
          ) : null,
        )}
      </p>
      <ConnectionLight store={store} />
      <button
        type="button"
        class="plain"
        aria-label="Keyboard help"
        onClick={() => {
          store.helpIsOpen.value = true;
        }}
      >
        ?
      </button>
    </header>
  );
}

function ConnectionLight({ store }: { readonly store: Store }) {
  const connection = store.connection.value;
  const words = {
    connecting: 'Connecting…',
    live: 'Live',
    reconnecting: 'Not reachable, trying again…',
    refused: 'Refused',
  }[connection.state];
  return (
    <p
      class={`connection ${connection.state}`}
      role="status"
      title={connection.state === 'reconnecting' ? connection.error : ''}
    >
      <i aria-hidden="true" />
      {words}
    </p>
  );
}
