import { timeOfDay } from '../../parts/format.ts';
import { Banner } from '../../parts/state-banner.tsx';
import type { Stop } from './moments.ts';
import type { Store } from './store.ts';
import type { Scope } from './travel.ts';
import { useCommands } from './use-commands.ts';

const scopes: readonly (readonly [Scope, string])[] = [
  ['actor', 'This actor'],
  ['all', 'All actors'],
];

/** Moves through time, step by step or by dragging. Looking back only changes the display. */
export function Scrubber({ store }: { readonly store: Store }) {
  const { travel } = store;
  const stops = travel.stops.value;
  const position = travel.position.value;
  const isPast = travel.moment.value !== null;
  const stop = isPast ? stops[position - 1] : stops.at(-1);
  const isPlaying = travel.isPlaying.value;
  const present = store.opened.value ? 'End' : 'Live';
  useTravelCommands(store);
  return (
    <fieldset class={`scrubber ${isPast ? 'past' : ''}`} aria-label="Time travel">
      <button
        type="button"
        disabled={position === 0}
        aria-label="Step back"
        title="Step back (←)"
        onClick={() => travel.step(-1)}
      >
        ‹
      </button>
      <button
        type="button"
        disabled={stops.length === 0}
        aria-label={isPlaying ? 'Pause' : 'Play'}
        title={`${isPlaying ? 'Pause' : 'Play'} (p)`}
        onClick={() => (isPlaying ? travel.pause() : travel.play())}
      >
        {isPlaying ? '❙❙' : '▶'}
      </button>
      <button
        type="button"
        disabled={!isPast}
        aria-label="Step forward"
        title="Step forward (→)"
        onClick={() => travel.step(1)}
      >
        ›
      </button>
      <input
        type="range"
        aria-label="Moment"
        min={0}
        max={Math.max(1, stops.length)}
        step={1}
        disabled={stops.length === 0}
        value={stops.length === 0 ? 1 : position}
        aria-valuetext={stop ? describe(store, stop) : 'the beginning'}
        onInput={(event) => {
          travel.pause();
          travel.goTo(event.currentTarget.valueAsNumber);
        }}
      />
      <span class="at mono cut">
        {stop ? describe(store, stop) : isPast ? 'before the records' : 'nothing recorded'}
      </span>
      <span class="scopes">
        {scopes.map(([scope, words]) => (
          <button
            key={scope}
            type="button"
            aria-pressed={travel.scope.value === scope}
            onClick={() => travel.setScope(scope)}
          >
            {words}
          </button>
        ))}
      </span>
      <button
        type="button"
        class={isPast ? 'main' : ''}
        disabled={!isPast}
        title={`${present} (l)`}
        onClick={() => travel.leave()}
      >
        {present}
      </button>
    </fieldset>
  );
}

const stopWords: Readonly<Record<Stop['what'], string>> = {
  made: 'was made',
  moved: '',
  ended: 'ended',
  deadLetter: 'never got',
};

/** `14:02:03.120 atelier PROBE.FAILED`. */
function describe(store: Store, { at, actorId, what, event }: Stop): string {
  const ofAll = store.travel.scope.value === 'all';
  const title = ofAll ? (store.travel.base.value.byId.get(actorId)?.title ?? actorId).replace(/^.*[/\\](?=.)/, '') : '';
  return [timeOfDay(new Date(at)), title, stopWords[what], event].filter(Boolean).join(' ');
}

function useTravelCommands(store: Store): void {
  const { travel } = store;
  const isPast = () => travel.moment.peek() !== null;
  const hasStops = () => travel.stops.peek().length > 0;
  const group = 'Time travel';
  useCommands(store.app, [
    {
      id: 'actors.back',
      title: 'Step back',
      group,
      keys: ['ArrowLeft', '['],
      isEnabled: hasStops,
      run: () => travel.step(-1),
    },
    {
      id: 'actors.on',
      title: 'Step forward',
      group,
      keys: ['ArrowRight', ']'],
      isEnabled: isPast,
      run: () => travel.step(1),
    },
    {
      id: 'actors.play',
      title: 'Play or pause the recording',
      group,
      keys: ['p'],
      isEnabled: hasStops,
      run: () => (travel.isPlaying.peek() ? travel.pause() : travel.play()),
    },
    {
      id: 'actors.live',
      title: 'Return to the present',
      group,
      keys: ['l', 'Escape'],
      isEnabled: isPast,
      run: () => travel.leave(),
    },
    {
      id: 'actors.scope',
      title: 'Look back at all actors or at this one',
      group,
      keys: ['t'],
      run: () => travel.setScope(travel.scope.peek() === 'all' ? 'actor' : 'all'),
    },
    {
      id: 'actors.compare',
      title: 'Compare the next steps with this one',
      group,
      keys: ['b'],
      isEnabled: () => (store.selected.peek()?.steps ?? 0) > 0,
      run: () => {
        store.compare({ a: store.selected.peek()?.steps ?? null });
        store.setTab('diff');
      },
    },
  ]);
}

/** Shown when the view shows a past moment, or another server. */
export function PastBanner({ store }: { readonly store: Store }) {
  const { travel } = store;
  const opened = store.opened.value;
  const moment = travel.moment.value;
  const since = store.live.value.recordCount - travel.base.value.recordCount;
  return (
    <div class="banners">
      {opened && (
        <Banner tone="warn">
          <p>
            <b>Recording</b> {opened.name}, made {opened.recording.recordedAt.toLocaleString()}
            {Object.values(opened.recording.about).map((text) => ` · ${text}`)}. Nothing here is live.
          </p>
          <button type="button" onClick={() => store.closeRecording()}>
            Close the recording
          </button>
        </Banner>
      )}
      {moment !== null && (
        <Banner tone="neutral">
          <p>
            <b>The past.</b> {travel.scope.value === 'all' ? 'The whole tree' : 'Everything'} as it was at{' '}
            <b class="mono">{timeOfDay(new Date(moment.at))}</b>. Nothing is sent to any actor.
            {!opened && since > 0 && <span class="quiet"> {since} records have come since.</span>}
          </p>
        </Banner>
      )}
    </div>
  );
}
