import { computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];
export const densities = ['compact', 'comfortable'] as const;
export type Density = (typeof densities)[number];

/** Choices of the user for this browser, saved in its local storage and shared by all tabs of this origin. */
export interface Preferences {
  readonly theme: Signal<Theme>;
  readonly density: Signal<Density>;
  /** Density of rows; on a phone they are comfortable, because a finger needs room. */
  readonly rows: ReadonlySignal<Density>;
  /** Whether single letters are shortcuts: users who dictate must be able to switch them off (WCAG 2.1.4). */
  readonly letterKeys: Signal<boolean>;
}

/** Storage key of a preference; `public/assets/theme.js` reads the same keys before the first paint. */
const keyOf = (name: string): string => `oratorio.${name}`;

export function createPreferences(): Preferences {
  const { dataset } = document.documentElement;
  const theme = kept('theme', themes, 'system');
  const density = kept('density', densities, 'compact');
  const phone = matchMedia('(max-width: 600px)');
  const isPhone = signal(phone.matches);
  phone.addEventListener('change', ({ matches }) => {
    isPhone.value = matches;
  });
  const rows = computed(() => (isPhone.value ? 'comfortable' : density.value));
  const letters = kept('letterKeys', ['on', 'off'] as const, 'on');
  const letterKeys = signal(letters.peek() === 'on');
  effect(() => {
    dataset['theme'] = theme.value;
  });
  effect(() => {
    dataset['density'] = rows.value;
  });
  effect(() => {
    letters.value = letterKeys.value ? 'on' : 'off';
  });
  return { theme, density, rows, letterKeys };
}

/** Choice that outlives the tab and follows the choice of other tabs. */
function kept<T extends string>(name: string, choices: readonly T[], otherwise: T): Signal<T> {
  const known = (text: string | null): T => choices.find((choice) => choice === text) ?? otherwise;
  const choice = signal<T>(known(read(keyOf(name))));
  effect(() => write(keyOf(name), choice.value));
  addEventListener('storage', (event) => {
    if (event.key === keyOf(name)) choice.value = known(event.newValue);
  });
  return choice;
}

/** Text of the local storage; null when it is empty, or when the browser stores nothing. */
export function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function write(key: string, text: string): void {
  try {
    localStorage.setItem(key, text);
  } catch {
    // Storage is full or switched off: the choice applies to this tab only.
  }
}
