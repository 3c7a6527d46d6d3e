'use strict';
exports.Rates = class Rates {
    description = {
        displayName: 'Rates', name: 'rates', version: 1, inputs: ['main'], outputs: ['main'],
        requestDefaults: { baseURL: 'https://rates.example/v1', headers: { Accept: 'application/json' } },
        properties: [
            { name: 'operation', type: 'options', noDataExpression: true, default: 'latest', options: [
                { name: 'Latest', value: 'latest', routing: { request: { method: 'GET', url: '/latest' }, output: { postReceive: [{ type: 'rootProperty', properties: { property: 'rates' } }] } } },
                { name: 'Of a Day', value: 'day', routing: { request: { method: 'GET', url: '=/days/{{$parameter["day"]}}' } } },
                { name: 'Alert', value: 'alert', routing: { request: { method: 'POST', url: '/alerts' } } }] },
            { name: 'day', type: 'string', required: true, default: '', displayOptions: { show: { operation: ['day'] } } },
            { name: 'base', type: 'string', default: 'EUR', displayOptions: { show: { operation: ['latest', 'day'] } }, routing: { send: { type: 'query', property: 'base' } } },
            { name: 'currency', type: 'string', required: true, default: '', displayOptions: { show: { operation: ['alert'] } }, routing: { send: { type: 'body', property: 'when.currency' } } },
            { name: 'above', type: 'number', default: 1, displayOptions: { show: { operation: ['alert'] } }, routing: { send: { type: 'body', property: 'when.above' } } },
        ],
    };
};
