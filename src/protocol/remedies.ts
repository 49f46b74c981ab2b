/** Remedies for problems: data for the buttons of the page, and text for a terminal. */
import type { Problem, Remedy } from './health.ts';

/** Place of a setting in a file. */
export interface SettingPlace {
  readonly file: string;
  /** Line, from 1; null if unknown. */
  readonly line: number | null;
  /** Whether it is the user's own file, which `oratorio login` writes. */
  readonly isUsers: boolean;
}

/** Places of the settings that may cause a failed turn; a missing one is a default or comes from the environment. */
export type SettingPlaces = Readonly<Record<string, SettingPlace | undefined>>;

/** Number of automatic restarts. */
export const restartLimit = 'Supervision.MaxRestarts';

/** Setting that causes a failure, by its code. */
export const blamedSettings: Readonly<Record<string, readonly string[]>> = {
  upstreamUnauthorized: ['ApiKey', 'ApiKeyCommand'],
  upstreamRejected: ['Model'],
  unknownModel: ['Model'],
};

/** `file:3`, `file` without a line. */
export const placeWords = ({ file, line }: Pick<SettingPlace, 'file' | 'line'>): string =>
  line === null ? file : `${file}:${line}`;

/**
 * Remedy for a failure that a setting causes; undefined if no setting causes it. A login replaces a key in the user's own file; any other
 * value is edited in its file.
 */
export function remedyOfFailure(code: string, places: SettingPlaces): Remedy | undefined {
  const settings = blamedSettings[code];
  if (settings === undefined) return undefined;
  const keyPath = settings.find((name) => places[name] !== undefined);
  const place = keyPath === undefined ? undefined : places[keyPath];
  const isKey = settings.includes('ApiKey');
  if (keyPath !== undefined && place && !(isKey && place.isUsers))
    return { act: 'editSetting', file: place.file, line: place.line, keyPath };
  return isKey ? { act: 'login' } : undefined;
}

/** A remedy as text for a terminal. @param workspace canonical path, quoted for a shell */
export function remedyText(remedy: Remedy, workspace: string): string {
  switch (remedy.act) {
    case 'editSetting': {
      const models = remedy.keyPath === 'Model' ? ' (models: oratorio model list)' : '';
      const setting = remedy.keyPath === '' ? placeWords(remedy) : `${remedy.keyPath} in ${placeWords(remedy)}`;
      return `edit ${setting}${models}, then: oratorio restart ${workspace}`;
    }
    case 'raiseLimit':
      return `raise ${remedy.keyPath} in ${placeWords(remedy)}, then: oratorio up ${workspace}`;
    case 'openLog':
      return `oratorio logs ${workspace}`;
    case 'login':
      return 'oratorio login';
    case 'start':
      return `oratorio up ${workspace}`;
    case 'restart':
      return `oratorio restart ${workspace}`;
    case 'trust':
      return `oratorio trust ${workspace}`;
  }
}

/** Remedies for a workspace that is down, most useful first. @param places places of the settings; empty if they are unusable */
export function restRemediesOf(isGivenUp: boolean, places: SettingPlaces): Remedy[] {
  const limit = isGivenUp ? places[restartLimit] : undefined;
  return [
    { act: 'start' },
    ...(limit ? [{ act: 'raiseLimit' as const, file: limit.file, line: limit.line, keyPath: restartLimit }] : []),
    { act: 'openLog' },
  ];
}

/** Labels of remedies that a button carries out. */
export const remedyLabels = {
  login: 'Change the key…',
  start: 'Start again',
  restart: 'Restart',
  raiseLimit: 'Raise the limit…',
  openLog: 'Open the log',
  trust: 'Review and trust…',
} as const;

/** Fields of a problem that name its remedy. */
export const remedied = (remedy: Remedy, workspace: string): Pick<Problem, 'next' | 'remedy'> => ({
  next: remedyText(remedy, workspace),
  remedy,
});
