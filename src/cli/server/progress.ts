import type { ChangeEvent, ObserveChange } from '../../deploy/index.ts';
import type { Output, Progress } from '../output.ts';

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;
const longestLine = 100;

/**
 * Shows a change while it is made: a spinner with the current phase on a terminal, and one line per phase with its time,
 * there and elsewhere. Programs that read JSON get the result only.
 */
export function showChange(output: Output): { readonly observe: ObserveChange; readonly stop: () => void } {
  let progress: Progress | undefined;
  let title = '';
  const stop = () => {
    progress?.stop();
    progress = undefined;
  };
  const say = (text: string) => {
    if (!output.json) output.note(text);
  };

  function phase(event: Extract<ChangeEvent, { type: 'phase' }>): void {
    stop();
    title = event.title;
    if (event.state === 'begun') progress = output.json ? undefined : output.progress(title);
    else say(`${event.state === 'done' ? '✓' : '✖'} ${event.title} (${seconds(event.elapsedMs)})`);
  }

  return {
    stop,
    observe(event) {
      switch (event.type) {
        case 'phase':
          return phase(event);
        case 'output':
          return progress?.text(`${title}: ${event.line.slice(0, longestLine)}`);
        case 'undoing':
          stop();
          say(`! ${event.reason}`);
          progress = output.json ? undefined : output.progress('Putting everything back');
          return;
        case 'undone':
          stop();
          return say('✓ All changes are undone');
        case 'step':
          return;
      }
    },
  };
}
