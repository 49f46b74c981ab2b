/** Key code of a press that an input method takes. */
const inputMethodKey = 229;

/**
 * Whether a key press belongs to an input method. Safari sends the Enter that confirms Japanese, Chinese or Korean text after the end of
 * the composition; only its key code is special.
 */
export const isComposing = (event: KeyboardEvent): boolean => event.isComposing || event.keyCode === inputMethodKey;

/** Whether Enter makes a line, as on the keyboard of a phone, which has no other key for it. */
export const entersLines = (): boolean => matchMedia('(pointer: coarse)').matches;
