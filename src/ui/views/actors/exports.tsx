import { useRef } from 'preact/hooks';
import { mermaidOf, svgOf } from '../../../inspect/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import { copyText } from '../../parts/copy.tsx';
import { download, fileName } from '../../parts/download.ts';
import { recordsOf } from './recording.ts';
import type { Store } from './store.ts';
import { useCommands } from './use-commands.ts';

/** Menu of exports and imports. */
export function ExportMenu({ store }: { readonly store: Store }) {
  const input = useRef<HTMLInputElement>(null);
  const menu = useRef<HTMLDetailsElement>(null);
  const actions = exportActions(store, () => input.current?.click());
  useCommands(
    store.app,
    actions.map(({ id, title, run, isEnabled }) => ({
      id: `actors.${id}`,
      title,
      group: 'Actors',
      run,
      isEnabled: () => isEnabled,
      ...(id === 'saveRecording' && { keys: ['e'] }),
    })),
  );
  return (
    <details
      class="menu"
      ref={menu}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !menu.current?.open) return;
        event.preventDefault();
        menu.current.open = false;
        menu.current.querySelector('summary')?.focus();
      }}
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (menu.current && to instanceof Node && !menu.current.contains(to)) menu.current.open = false;
      }}
    >
      <summary class="button">Export</summary>
      <ul>
        {actions.map(({ id, title, run, isEnabled }) => (
          <li key={id}>
            <button
              type="button"
              class="bare"
              disabled={!isEnabled}
              onClick={() => {
                if (menu.current) menu.current.open = false;
                run();
              }}
            >
              {title}
            </button>
          </li>
        ))}
      </ul>
      <input
        ref={input}
        type="file"
        accept="application/json,.json"
        hidden
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          event.currentTarget.value = '';
          if (file) void store.open(file);
        }}
      />
    </details>
  );
}

interface ExportAction {
  readonly id: string;
  readonly title: string;
  readonly isEnabled: boolean;
  readonly run: () => void;
}

function exportActions(store: Store, chooseFile: () => void): readonly ExportAction[] {
  const { app } = store;
  const chart = store.chart.value;
  const active = store.selected.value?.states ?? [];
  const ofChart = (id: string, title: string, work: (chart: Chart) => void): ExportAction => ({
    id,
    title,
    isEnabled: chart !== undefined,
    run: () => chart && work(chart),
  });
  const stream = app.server.streams.inspect;
  return [
    ofChart('copyMermaid', 'Copy the chart as Mermaid', (drawn) =>
      copyText(app, mermaidOfChart(drawn, active), 'Mermaid'),
    ),
    ofChart('copySvg', 'Copy the chart as SVG', (drawn) => copyText(app, svgOf(drawn, { active }), 'SVG')),
    ofChart('saveSvg', 'Save the chart as SVG', (drawn) =>
      download(`${drawn.name}.svg`, svgOf(drawn, { active }), 'image/svg+xml'),
    ),
    {
      id: 'copyRecords',
      title: 'Copy the records of this actor as JSON',
      isEnabled: store.whole.value !== null,
      run: () => copyText(app, JSON.stringify(ownRecords(store), null, 2), 'Records'),
    },
    {
      id: 'copyCurl',
      title: 'Copy the stream of records as curl',
      // The package only answers requests of its page and has no stream.
      isEnabled: app.server.kind !== 'inspector',
      run: () => copyText(app, `${app.api.curl(stream)} --no-buffer`, 'Command'),
    },
    {
      id: 'saveRecording',
      title: 'Save everything as a recording',
      isEnabled: store.isLoaded.value && store.chart.value !== undefined,
      run: () => download(fileName('recording', 'json'), store.record(), 'application/json'),
    },
    { id: 'openRecording', title: 'Open a recording', isEnabled: true, run: chooseFile },
  ];
}

function ownRecords(store: Store): unknown[] {
  const actor = store.whole.peek();
  if (!actor) return [];
  return recordsOf(store.travel.base.peek()).filter((record) => 'id' in record && record.id === actor.id);
}

/** Mermaid of the chart, its active states marked. */
export function mermaidOfChart(chart: Chart, active: readonly string[]): string {
  const edges = chart.edges.map((edge) => ({ ...edge, internal: edge.points.length === 0 }));
  // `mermaidOf` uses the same identifiers.
  const marked = active.map((state) => `s_${state.replace(/\W/g, '_')}`);
  const marks = marked.length === 0 ? '' : `  classDef active stroke-width:4px\n  class ${marked.join(',')} active\n`;
  return `${mermaidOf({ ...chart, edges })}${marks}`;
}
