'use strict';
const { VersionedNodeType } = require('n8n-workflow');
const base = { displayName: 'Parcels', name: 'parcels', defaultVersion: 2 };
const of = (...operation) => ({ show: { operation } });
const operations = (...values) => ({ name: 'operation', type: 'options', default: values[0], options: values.map((value) => ({ name: value, value })) });
class First {
    description = { ...base, version: 1, inputs: ['main'], outputs: ['main'], properties: [operations('track')] };
    async execute() {
        return [this.helpers.returnJsonArray(await this.helpers.request({ method: 'GET', uri: 'https://old.parcels.example/track', json: true }))];
    }
}
class Second {
    description = {
        ...base, version: [2, 2.1], inputs: ['main'], outputs: ['main'],
        properties: [
            operations('track', 'ship'),
            { name: 'number', type: 'string', required: true, default: '', displayOptions: of('track') },
            { name: 'weight', type: 'number', required: true, default: 0, displayOptions: of('ship') },
            { name: 'insured', type: 'boolean', default: false, displayOptions: { show: { operation: ['ship'], '@version': [{ _cnd: { gte: 2.1 } }] } } },
        ],
    };
    async execute() {
        const url = 'https://parcels.example/v2/parcels', get = (name, other) => this.getNodeParameter(name, 0, other);
        const request = get('operation') === 'track'
            ? { method: 'GET', url: `${url}/${get('number')}` }
            : { method: 'POST', url, body: { weight: get('weight'), insured: get('insured', false) } };
        return [this.helpers.returnJsonArray(await this.helpers.httpRequest({ ...request, json: true }))];
    }
}
exports.Parcels = class Parcels extends VersionedNodeType {
    constructor() {
        super({ 1: new First(), 2: new Second(), 2.1: new Second() }, base);
    }
};
