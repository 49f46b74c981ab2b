import { channel } from 'node:diagnostics_channel';

/** Part of the life of an agent server: its start, with the preparation of turns, or a completed turn. */
export type LifePart = 'start' | 'turn';

/** Carries each part of the life that has run to the file that loaded the program, which is another bundle. */
export const lifeParts = channel('oratorio.life-part');
