import type { Signal } from '@preact/signals';
import type { App } from '../app/app.ts';
import type { Command } from '../app/commands.ts';
import { densities, themes } from '../app/preferences.ts';
import { copyText } from '../parts/copy.tsx';

/** Overlay that the shell shows over the views. */
export type Overlay = 'none' | 'palette' | 'keys';

/** Commands of every page. */
export function pageCommands(app: App, overlay: Signal<Overlay>): readonly Command[] {
  const { preferences } = app;
  const toggle = (which: Overlay) => () => {
    overlay.value = overlay.peek() === which ? 'none' : which;
  };
  return [
    { id: 'palette', title: 'Search and run commands', group: 'Page', keys: ['Mod+k'], run: toggle('palette') },
    { id: 'keys', title: 'Show the keys', group: 'Page', keys: ['?'], run: toggle('keys') },
    {
      id: 'theme',
      title: 'Switch the theme: system, light, dark',
      group: 'Page',
      run: () => {
        preferences.theme.value = next(themes, preferences.theme.peek());
        app.toast({ text: `Theme: ${preferences.theme.peek()}`, ms: 2_500 });
      },
    },
    {
      id: 'density',
      title: 'Switch the density: compact, comfortable',
      group: 'Page',
      run: () => {
        preferences.density.value = next(densities, preferences.density.peek());
      },
    },
    {
      id: 'letterKeys',
      title: 'Switch single-letter shortcuts on or off',
      group: 'Page',
      run: () => {
        preferences.letterKeys.value = !preferences.letterKeys.peek();
        app.toast({ text: `Single-letter shortcuts are ${preferences.letterKeys.peek() ? 'on' : 'off'}.` });
      },
    },
    {
      id: 'copyLink',
      title: 'Copy a link to this view',
      group: 'Page',
      run: () => copyText(app, location.href, 'Link'),
    },
  ];
}

const next = <T>(choices: readonly T[], present: T): T =>
  choices[(choices.indexOf(present) + 1) % choices.length] ?? present;
