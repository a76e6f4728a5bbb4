// Texts of the view `trace`.

export const trace = {} as const satisfies Record<string, readonly [en: string, zh: string]>
