/** `file` for 1, else `files`. */
export const plural = (number: number, noun: string, many = `${noun}s`): string => (number === 1 ? noun : many);

/** `1 line`, `2 lines`. */
export const count = (number: number, noun: string, many?: string): string => `${number} ${plural(number, noun, many)}`;
